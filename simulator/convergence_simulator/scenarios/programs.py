"""Random programs: generated scenarios. Each is made from a number; the same number always gives the same program.

A program is text in the scenario language, so a failing program can be saved and kept as a scenario.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convergence.values import replace
from convergence_simulator.cloud.sorts import SORTS as THING_SORTS
from convergence_simulator.cloud.sorts import (
    Addressed,
    Both,
    EnforcedAddressed,
    EnforcedBlind,
    EnforcedLater,
    EnforcedNameless,
    Listener,
)
from convergence_simulator.cloud.things import Thing
from convergence_simulator.scenarios.templates import GetAtt, GetRes, RsrcDef, Template

NAME = re.compile(r'(random|tree):(\d{1,12})')
"""Name of a random program in place of a file name. Programs about nested stacks have names with ``tree``."""
TREES = 10**12
"""Number of the first program about nested stacks."""

NAMES = 'ABCDEF'
ALONE = (Addressed.__name__, EnforcedAddressed.__name__)
SELDOM = (Both.__name__, EnforcedBlind.__name__, EnforcedLater.__name__, EnforcedNameless.__name__)
"""Sorts that replace another sort now and then, with separate random numbers."""
OFTEN = 5
"""Weight of the usual sort of a random resource; each other sort has the weight 1."""
SORTS = (Thing.__name__,) * OFTEN + tuple(sort for sort in THING_SORTS if sort not in (*ALONE, *SELDOM))
BELOW = tuple(sort for sort in SORTS if sort != Listener.__name__)
"""Sorts in a nested stack: no user sends signals to its resources."""
STACKS = 'AC'
"""Names of the resources that are stacks, in programs about nested stacks."""
DEEPEST = 3
SCALED = 0.5
"""Share of the programs about nested stacks that have groups."""
POLICIES_OF_GROUP: Mapping[str, tuple[int, str]] = {
    'More': (1, 'change_in_capacity'),
    'Less': (-1, 'change_in_capacity'),
    'Many': (2, 'change_in_capacity'),
    'Exact': (2, 'exact_capacity'),
}
"""Policies that scale a group: the adjustment and its type."""
POLICIES = (None,) * 8 + ('Retain', 'Snapshot', 'Delete')
DRIFT_POLICIES = ('ignore', 'report', 'repair')
RESTRICTIONS = ('update', 'replace')
RESTRICTED = 0.03
"""Share of the resources that must not be changed, or not be replaced, in one template."""
EXTERNAL = 'theirs'


def number_of(path: Path) -> int | None:
    """Return the number of the random program with this name; None for a file."""
    match = NAME.fullmatch(str(path))
    if match is None:
        return None
    return int(match[2]) + (TREES if match[1] == 'tree' else 0)


@dataclass(frozen=True, slots=True)
class ScenarioProgram:
    """A program in parts that can be left out one by one.

    :param head: lines that all calls need.
    :param lines: one call each.
    """

    head: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The program as the text of a scenario file."""
        return '\n'.join((*self.head, *self.lines, ''))

    def without(self, start: int, count: int) -> ScenarioProgram:
        """Return the program without some of its calls."""
        return replace(self, lines=(*self.lines[:start], *self.lines[start + count :]))


class _Author:
    """Generates one program."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(f'program {number}')
        self._manner = random.Random(f'manner of program {number}')
        others = random.Random(
            f'addresses of program {number}'
        )  # separate random numbers: the rest of each program stays the same
        self._addressed = {name: Addressed.__name__ for name in NAMES if others.random() < 0.08}
        self._addressed |= {name: EnforcedAddressed.__name__ for name in self._addressed if others.random() < 0.25}
        seldom = random.Random(f'seldom sorts of program {number}')
        self._seldom = {name: seldom.choice(SELDOM) for name in NAMES if seldom.random() < 0.1}
        self._rules = random.Random(f'restrictions of program {number}')
        self._drift = random.Random(f'drift of program {number}')
        self._number = number
        self._has_trees = number >= TREES
        self._scale = random.Random(f'scale of program {number}')
        self._has_groups = self._has_trees and self._scale.random() < SCALED
        self._templates: list[Template] = []

    def write(self) -> ScenarioProgram:
        templates = self._several()
        head = [f'"""Random program {self._number}."""', '']
        head += [f't{index} = {template!r}' for index, template in enumerate(templates)]
        head.append(f"engine.exists('{EXTERNAL}', {{'v': 0}})")
        lines = ["engine.rollback_on_failure('s')"] if self._happens(0.5) else []
        lines += ["engine.time_limit('s', 30)"] if self._happens(0.1) else []
        lines += self._trouble(0.5)
        lines.append("engine.create_stack('s', t0)")
        lines += self._meanwhile()
        for _ in range(self._random.randint(2, 6)):
            lines += self._trouble(0.35)
            lines += self._signals()
            lines.append(self._operation(len(templates)))
            lines += self._signals()
            lines += self._meanwhile()
        if self._happens(0.5):
            leave = f', leave=[{self._name()!r}]' if self._happens(0.2) else ''
            lines.append(f"engine.delete_stack('s'{leave})")
        return ScenarioProgram(tuple(head), (*lines, 'engine.settle()'))

    def _happens(self, rate: float) -> bool:
        return self._random.random() < rate

    # --- templates --------------------------------------------------------------------------------------------

    def _several(self) -> list[Template]:
        """Generate templates that follow one another, as a user's updates do."""
        names = list(NAMES[: self._random.randint(2, len(NAMES))])
        kinds = {name: self._random.choice(SORTS) for name in NAMES}
        others = self._random.choice(NAMES) if self._happens(0.3) else ''
        kinds |= {others: EXTERNAL} if others else {}
        templates = [self._template(names, kinds)]
        for _ in range(self._random.randint(1, 3)):
            if self._happens(0.4):
                names = sorted(self._random.sample(NAMES, self._random.randint(1, len(NAMES))))
            if self._happens(0.15):
                # An update does not change an external resource into another one.
                kinds |= {name: self._random.choice(SORTS) for name in self._random.choice(NAMES) if name != others}
            if self._happens(0.25):
                self._random.shuffle(names)  # resources that the changed one depended on may now depend on it
            templates.append(self._template(names, kinds))
        return templates

    def _template(self, names: Sequence[str], kinds: dict[str, str]) -> Template:
        """Generate a template. Each resource may refer to those before it."""
        resources: dict[str, RsrcDef] = {}
        for position, name in enumerate(names):
            before = [other for other in names[:position] if resources[other].condition is not False]
            if self._has_trees and name in STACKS:
                resources[name] = self._stack(name, before, 1)
            else:
                others = self._addressed.get(name) or self._seldom.get(name)
                kind = others if others is not None and kinds[name] != EXTERNAL else kinds[name]
                resources[name] = self._resource(kind, before)
        if self._has_groups:
            resources |= self._groups()
        hooks = {}
        if self._happens(0.1):
            hooks[self._random.choice(names)] = self._random.choice(
                ['pre-create', 'pre-update', 'pre-delete', 'post-create', 'post-update', 'post-delete']
            )
        restricted = {name: self._rules.choice(RESTRICTIONS) for name in names if self._rules.random() < RESTRICTED}
        return Template(resources, hooks=hooks, restricted=restricted, **_policies(self._drift, names))

    def _resource(self, kind: str, before: Sequence[str]) -> RsrcDef:
        if kind == EXTERNAL:
            return RsrcDef({}, external_id=EXTERNAL)
        properties: dict[str, Any] = {'v': self._random.randint(0, 2)}
        if self._happens(0.3):
            properties['r!'] = self._random.randint(0, 1)
        for other in self._random.sample(list(before), min(len(before), self._random.randint(0, 2))):
            reference = GetRes(other) if self._happens(0.6) else GetAtt(other, 'v')
            properties[f'{other.lower()}'] = reference
        depends = self._random.sample(list(before), 1) if before and self._happens(0.2) else []
        patience = {'time_limits': {'create': 300}, 'retry': {'attempts': 3}} if self._happens(0.1) else None
        condition = self._random.choice([True, False]) if self._happens(0.1) else None
        policy = self._random.choice(POLICIES)
        if (kind, policy) == ('Exclusive', 'Retain'):
            policy = None  # a retained object keeps its address for ever
        return RsrcDef(properties, depends, kind=kind, deletion_policy=policy, condition=condition, patience=patience)

    def _stack(self, name: str, before: Sequence[str], depth: int) -> RsrcDef:
        """Generate a nested stack. Its resources have the name of the stack with a number."""
        inner: dict[str, RsrcDef] = {}
        for number in range(1, self._random.randint(1, 3) + 1):
            inside = f'{name}{number}'
            there = [other for other in inner if inner[other].condition is not False]
            if depth < DEEPEST and number == 1 and self._happens(0.5):
                inner[inside] = self._stack(inside, there, depth + 1)
            else:
                inner[inside] = self._resource(self._random.choice(BELOW), there)
        properties: dict[str, Any] = {other.lower(): GetRes(other) for other in before if self._happens(0.3)}
        return RsrcDef({'v': self._random.randint(0, 1), **properties}, nested=Template(inner))

    def _groups(self) -> dict[str, RsrcDef]:
        """Generate a group, the policies that scale it on signals, and a resource that shows its size."""
        chance = self._scale
        inner = Template({'G1': RsrcDef({'v': chance.randint(0, 1)})})
        member: dict[str, Any] = {'type': Thing.type_name, 'properties': {'v': chance.randint(0, 1)}}
        if chance.random() < 0.4:
            member = RsrcDef({'v': 0}, nested=inner).document()
            del member['depends_on']
        desired = chance.choice([None, 1, 2, 3])
        scaled = {'resource': member, 'min_size': chance.randint(0, 1), 'max_size': chance.randint(3, 5)}
        scaled |= {'desired_capacity': desired} if desired is not None else {}
        scaled |= {'cooldown': chance.choice([5, 60])} if chance.random() < 0.3 else {}
        if chance.random() < 0.4:
            scaled['rolling_updates'] = {'max_batch_size': chance.randint(1, 2), 'min_in_service': chance.randint(0, 1)}
        resources = {'G': RsrcDef(scaled, kind='Group')}
        for name, (amount, meaning) in POLICIES_OF_GROUP.items():
            asked = {'scaling_adjustment': amount, 'adjustment_type': meaning}
            resources[name] = RsrcDef({'auto_scaling_group_id': GetRes('G'), **asked}, kind='Policy')
        if chance.random() < 0.6:
            resources['N'] = self._counted()
        return resources

    def _counted(self) -> RsrcDef:
        chance = self._scale
        member = {'type': Thing.type_name, 'properties': {'v': chance.randint(0, 1), 'name': 'number %index%'}}
        properties: dict[str, Any] = {'count': chance.randint(0, 4), 'resource_def': member}
        if chance.random() < 0.3:
            properties['removal_policies'] = [{'resource_list': [str(chance.randint(0, 3))]}]
            properties['removal_policies_mode'] = chance.choice(['append', 'update'])
        batches = {'max_batch_size': chance.randint(1, 3)}
        policy = chance.choice([None, {'batch_create': batches}, {'rolling_update': {**batches, 'min_in_service': 1}}])
        return RsrcDef(properties, kind='CountedGroup', update_policy=policy)

    # --- calls ------------------------------------------------------------------------------------------------

    def _operation(self, templates: int) -> str:
        update = f"engine.update_stack('s', t{self._random.randrange(templates)})"
        others = [
            *('rollback_stack', 'cancel', 'cancel_and_roll_back', 'check_stack', 'snapshot_stack', 'restore_stack'),
            *('suspend_stack', 'resume_stack', 'delete_snapshot', 'abandon_stack', 'adopt_stack', 'delete_stack'),
        ]
        if self._happens(0.5):
            return update
        if self._happens(0.05):
            return f"engine.delete_stack('s', leave={sorted(self._random.sample(NAMES, self._random.randint(1, 2)))})"
        verb = self._random.choice(others)
        if verb == 'cancel':
            verb = self._manner.choice(('cancel', 'cancel_patiently'))
        elif verb == 'rollback_stack':
            verb = self._manner.choice(('rollback_stack', 'go_back'))
        return f"engine.{verb}('s')"

    def _signals(self) -> list[str]:
        """Generate signals that scale groups, before the next operation and during it."""
        lines: list[str] = []
        while self._has_groups and self._scale.random() < 0.4:
            lines.append(f"engine.signal('s', '{self._scale.choice([*POLICIES_OF_GROUP])}')")
            lines += self._scale.choice([[], [], ['engine.noop(3)'], ['engine.settle()']])
        return lines

    def _meanwhile(self) -> list[str]:
        """Generate the events until the next request of the user."""
        accidents = [
            'engine.crash_worker()',
            'engine.crash_engine()',
            'engine.freeze_worker(90)',
            'engine.freeze_engine(20)',
            'engine.broker_away(20)',
            'engine.database_away(20)',
            'engine.pass_time(40)',
            'engine.double(2)',
            'engine.drop(2)',
        ]
        lines: list[str] = []
        while self._happens(0.6):
            if self._happens(0.3):
                lines.append(self._random.choice(accidents))
            elif self._happens(0.4):
                lines.append('engine.settle()')
            else:
                lines.append(f'engine.noop({self._random.randint(1, 6)})')
        return lines

    def _trouble(self, rate: float) -> list[str]:
        """Generate calls that set the behaviour of resources from now on."""
        lines: list[str] = []
        while self._happens(rate):
            action, times = self._random.choice(['CREATE', 'UPDATE', 'DELETE', None]), self._random.choice([1, 1, 2])
            wrong = f"'{self._name()}', action={action!r}, times={times}"
            question = self._random.choice(['FIND', 'OBSERVE', 'ATTRIBUTE', 'CANCEL'])
            kinds = [
                f'engine.fails({wrong})',
                f'engine.fails({wrong}, afterwards=True, takes={self._random.choice([0, 7])})',
                f'engine.raises({wrong})',
                f'engine.is_busy({wrong})',
                f'engine.blocks({wrong}, seconds={self._random.choice([3, 20])})',
                f"engine.takes('{self._name()}', {self._random.choice([3, 30, 100])})",
                f"engine.is_refused('{self._name()}', begun={self._happens(0.5)})",
                f"engine.is_refused('{self._name()}', takes=5)",
                f"engine.is_made_silently('{self._name()}')",
                self._answer(question),
                f"engine.works('{self._name()}')",
            ]
            lines.append(self._random.choice(kinds))
        return lines

    def _answer(self, question: str) -> str:
        how, seconds = self._random.choice([('FAILS', 0), ('RAISES', 0), ('BUSY', 0), ('BLOCKS', 8), ('LIES', 20)])
        if how == 'LIES':
            return f"engine.answers('{self._name()}', 'FIND', 'LIES', seconds={seconds}, times=None)"
        return f"engine.answers('{self._name()}', {question!r}, {how!r}, seconds={seconds})"

    def _name(self) -> str:
        if self._has_trees and self._happens(0.6):
            return self._random.choice(STACKS) + self._random.choice(('1', '11', '12', '2', '3'))
        return self._random.choice(NAMES)


def _policies(chance: random.Random, names: Sequence[str]) -> dict[str, Any]:
    """Generate policies for drift; they matter only if the world has observers."""
    said = {name: chance.choice(DRIFT_POLICIES) for name in sorted(names) if chance.random() < 0.2}
    return {'drift': said, 'drift_policy': chance.choice((*DRIFT_POLICIES, 'repair'))}


def program(number: int) -> ScenarioProgram:
    """Generate the program of a number."""
    return _Author(number).write()


def shortened(
    whole: ScenarioProgram, still_fails: Callable[[ScenarioProgram], bool], attempts: int = 200
) -> ScenarioProgram:
    """Return the shortest program found that fails in the same way, by leaving calls out, many at once first.

    :param still_fails: runs a program and returns True if it fails in the same way.
    """
    best, size = whole, max(1, len(whole.lines) // 2)
    while attempts > 0:
        improved, start = False, len(best.lines) - size
        while start >= 0 and attempts > 0:
            shorter = best.without(start, size)
            attempts -= 1
            if still_fails(shorter):
                best, improved = shorter, True
            start -= 1 if size == 1 else size
        if size == 1 and not improved:
            break
        size = size if improved and size > 1 else max(1, size // 2)
    return best
