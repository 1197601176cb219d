"""``OS::Heat::RandomString``: a random secret."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

import secrets
import string
from dataclasses import dataclass

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.waiting import physical_name
from convergence.resources.constraints import AllowedValues, Length, Range
from convergence.resources.contract import Answer, Call, Done, FinalFailure, ResourceType
from convergence.resources.schema import prop
from convergence.resources.support import Status, SupportStatus, since

CLASSES = {
    'lettersdigits': string.ascii_letters + string.digits,
    'letters': string.ascii_letters,
    'lowercase': string.ascii_lowercase,
    'uppercase': string.ascii_uppercase,
    'digits': string.digits,
    'hexdigits': string.digits + 'ABCDEF',
    'octdigits': string.octdigits,
}
USUAL: dict[str, Json] = {'class': 'lettersdigits', 'min': 1}
AT_LEAST = (Range(1, 512),)


@dataclass(frozen=True)
class CharacterClass:
    """A well known set of characters and how many of them there must be."""

    name: str = prop('lettersdigits', name='class', constraints=[AllowedValues(tuple(CLASSES))])
    minimum: int = prop(1, name='min', constraints=AT_LEAST)


@dataclass(frozen=True)
class CharacterSequence:
    """A set of characters and how many of them there must be."""

    sequence: str = prop(constraints=[Length(minimum=1)])
    minimum: int = prop(1, name='min', constraints=AT_LEAST)


@dataclass(frozen=True)
class RandomProperties:
    """See the descriptions of the fields. Every change makes a new string."""

    length: int = prop(32, constraints=[Range(1, 512)], description='Length of the string.')
    character_classes: list[CharacterClass] | None = prop(
        [USUAL], description='Classes of characters to choose from; an empty list leaves it to character_sequences.'
    )
    character_sequences: list[CharacterSequence] | None = prop(
        None, description='Further sets of characters to choose from.'
    )
    sequence: str | None = prop(
        None,
        constraints=[AllowedValues(tuple(CLASSES))],
        description='What one of the character_classes was called in the past.',
        support=SupportStatus(
            Status.HIDDEN,
            '5.0.0',
            previous=SupportStatus(Status.DEPRECATED, '2014.2', 'Use property character_classes.'),
        ),
    )
    salt: str | None = prop(None, description='Change it to have a new string.')

    def __post_init__(self) -> None:
        if sum(minimum for _, minimum in self.alphabets()) > self.length:
            raise ValueError('length is smaller than the sum of all min values')

    def alphabets(self) -> list[tuple[str, int]]:
        """Sets of characters to choose from, each with its minimum."""
        classes = self.character_classes or []
        if self.sequence is not None:
            usual = [CharacterClass()]
            classes = [*(classes if classes != usual else []), CharacterClass(name=self.sequence)]
        alphabets = [(CLASSES[entry.name], entry.minimum) for entry in classes]
        alphabets += [(entry.sequence, entry.minimum) for entry in self.character_sequences or ()]
        return alphabets or [(CLASSES['lettersdigits'], 1)]


@dataclass(frozen=True)
class RandomAttributes:
    """The attributes of a random string."""

    value: str = attr('The random string.', secret=True)


class RandomString(ResourceType[RandomProperties]):
    """A random string; its reference is the string itself."""

    support = since('2014.1')
    Properties = RandomProperties
    Attributes = RandomAttributes
    token_enforced = True  # A second create makes another string and nothing that could be left over.
    create_ambiguity_s = 0.0

    @override
    def create(self, call: Call[RandomProperties]) -> Answer:
        """Draw the string."""
        return Done(physical_name(call), {'value': _draw(call.properties)})

    @override
    def delete(self, call: Call[RandomProperties]) -> Answer:
        """There is nothing to remove: the string lives in the engine's row."""
        return Done()

    @override
    def reference_id(self, call: Call[RandomProperties]) -> str | None:
        """The string."""
        value = call.data.get('value')
        return None if value is None else str(value)

    @override
    def attribute(self, call: Call[RandomProperties], name: str) -> Json:
        """The string."""
        if 'value' not in call.data:
            raise FinalFailure(f'{call.name} has no value yet')
        return call.data['value']


def _draw(properties: RandomProperties) -> str:
    alphabets = properties.alphabets()
    drawn = [secrets.choice(alphabet) for alphabet, minimum in alphabets for _ in range(minimum)]
    everything = ''.join(alphabet for alphabet, _ in alphabets)
    drawn += [secrets.choice(everything) for _ in range(properties.length - len(drawn))]
    secrets.SystemRandom().shuffle(drawn)
    return ''.join(drawn)
