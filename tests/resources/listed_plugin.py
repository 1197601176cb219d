# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
"""A package's types, which a manifest describes. What it has made is counted, and so is each import of this module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from convergence.core.model import Action, Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import AllowedValues, Length, Range, custom
from convergence.resources.contract import Done, FinalFailure, InProgress, ObjectNotFound, Observed, ResourceType
from convergence.resources.schema import prop, remaining, secret
from convergence.resources.support import Status, SupportStatus
from convergence.resources.translation import Append, Drop, Rename

THINGS: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class Rule:
    port: int = prop(constraints=[Range(1, 65535)])
    remote: str | None = prop(None, name='from')


@dataclass(frozen=True)
class WallProperties:
    TRANSLATIONS = (Rename(('colour',), 'color'), Append(('rule',), 'rules'), Drop(('legacy',)))
    color: str = prop(
        'grey', update_allowed=True, constraints=[AllowedValues(('grey', 'red'), 'Paint it grey or red.')]
    )
    rules: list[Rule] = prop([], update_allowed=True, description='What may pass.', constraints=[Length(None, 3)])
    network: str | None = prop(None, constraints=[custom('neutron.network')])
    address: str | None = prop(None, constraints=[custom('ip_addr')])
    key: str = secret(prop('', immutable=True))
    hops: list[str | None] = prop([], support=SupportStatus(Status.HIDDEN, '2', 'No more.'))
    limits: dict[str, int] = prop({'low': 1})

    def __post_init__(self):
        if any(rule.port == 13 for rule in self.rules):
            raise ValueError('nobody passes 13')


@dataclass(frozen=True)
class WallAttributes:
    height: int = attr('In metres.', of=())
    secret_door: str = attr(secret=True, name='secret-door')
    live: Json = attr('Asked for.', dear=True)


class Wall(ResourceType[WallProperties]):
    """A wall that takes two rounds to be built.

    And more that nobody is told.
    """

    Properties, Attributes = WallProperties, WallAttributes
    support = SupportStatus(Status.DEPRECATED, '2.0', 'Use fences.')
    create_ambiguity_s, time_limits, reference_of = 0.0, {Action.CREATE: 600.0}, ('color',)
    set_by_service = ('hops',)

    def create(self, call):
        assert isinstance(call.properties, WallProperties)
        THINGS[call.token] = {'color': call.properties.color, 'ports': [rule.port for rule in call.properties.rules]}
        return InProgress({'rounds': 1}, call.token)

    def poll(self, call, action, progress):
        return Done(call.token)

    def find(self, call):
        return Done(call.token) if call.token in THINGS else None

    def update(self, call):
        THINGS[call.physical_id]['color'] = call.properties.color
        return Done()

    def needs_replacement(self, call):
        return len(call.properties.rules) < len(call.previous.rules)

    def delete(self, call):
        THINGS.pop(call.physical_id, None)
        return Done()

    def observe(self, call):
        if call.physical_id not in THINGS:
            raise ObjectNotFound('no wall')
        return Observed()

    def attribute(self, call, name):
        return {'height': 2, 'secret-door': 'left', 'live': True}[name]


@dataclass(frozen=True)
class TagProperties:
    others: dict[str, Json] = remaining()


class Tag(ResourceType[TagProperties]):
    """A tag with whatever is on it."""

    Properties, token_enforced = TagProperties, True

    def create(self, call):
        THINGS[call.token] = call.properties.others
        return Done(call.token)

    def update(self, call):
        THINGS[call.physical_id] = call.properties.others
        return Done()

    def delete(self, call):
        THINGS.pop(call.physical_id, None)
        return Done()


class Refusing(Tag):
    """What it says of itself is right, and nothing is ever made."""

    def create(self, call):
        raise FinalFailure('no')


TYPES = {'Example::Wall': Wall, 'Example::Tag': Tag, 'Example::Refusing': Refusing}


def load(name):
    return TYPES[name]()
