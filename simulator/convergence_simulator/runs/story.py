"""Stories of runs, in which each step has an actor, an event and a recipient; as text or as a Mermaid diagram."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from convergence.core import effects
from convergence.core.effects import Decision
from convergence.core.model import Action, NodeStatus, Status, TraversalStatus
from convergence.core.rows import Node
from convergence_simulator.cloud.reality import PhysicalObject
from convergence_simulator.world.network import LOST, MessageInFlight
from convergence_simulator.world.world import World

ROWS, CLOUD = 'rows', 'cloud'
"""Names of the database and of reality in a story."""


class Manner(StrEnum):
    """Kind of a step of a story.

    * `ASKS`: a process sends a request. `DELIVERS`: a message arrives. `COMMITS`: a transaction was committed.
    * `ACTS`: an object changes. `SUFFERS`: a fault.
    """

    ASKS = 'ASKS'
    DELIVERS = 'DELIVERS'
    COMMITS = 'COMMITS'
    ACTS = 'ACTS'
    SUFFERS = 'SUFFERS'


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One step of a story.

    :param at_s: seconds of simulated time since the beginning of the run.
    :param what: the event, in one or more phrases.
    """

    manner: Manner
    at_s: float
    who: str
    whom: str
    what: tuple[str, ...]


@dataclass
class Story:
    """Records a story: call `Story.of(run.world)` before the run, and `text` or `mermaid` after it."""

    steps: list[StoryStep] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, world: World) -> Story:
        """Record all events of a world from now on."""
        story, begun_at = cls(), world.kernel.now

        def tell(manner: Manner, who: str, whom: str, what: Iterable[str]) -> None:
            story.steps.append(StoryStep(manner, world.kernel.now - begun_at, who, whom, tuple(what)))

        story._listen_to_processes(world, tell)
        story._listen_to_reality(world, tell)
        return story

    def _listen_to_processes(self, world: World, tell: Teller) -> None:
        others = world.watch.story

        def heard(who: str, what: str | MessageInFlight, whom: str) -> None:
            others(who, what, whom)
            if isinstance(what, MessageInFlight):
                manner = Manner.SUFFERS if whom == LOST else Manner.DELIVERS
                phrase = f'loses {self._message(world, what)}' if whom == LOST else self._message(world, what)
                tell(manner, who, '' if whom == LOST else whom, [phrase])
            else:
                tell(Manner.ASKS if whom else Manner.SUFFERS, who, whom, [what])

        def committed(world: World, decision: Decision[Any]) -> None:
            phrases = self._phrases(world, decision)
            if phrases:
                tell(Manner.COMMITS, _current(world), ROWS, phrases)

        world.watch.story = heard
        # Registered before the checks: a check may find a violation in the step and end the run.
        world.watch.commits.insert(0, committed)

    def _listen_to_reality(self, world: World, tell: Teller) -> None:
        others = world.reality.changed

        def changed(action: Action, thing: PhysicalObject) -> None:
            verb = {
                Action.CREATE: 'creates',
                Action.UPDATE: 'changes',
                Action.DELETE: 'deletes',
                Action.SUSPEND: 'suspends',
                Action.RESUME: 'resumes',
                Action.SIGNAL: 'gives its address to' if thing.has_address else 'takes its address from',
            }[action]
            values = ', '.join(f'{name}: {value}' for name, value in sorted(thing.properties.items()))
            shown = f' ({values})' if values and action is not Action.DELETE else ''
            tell(Manner.ACTS, _current(world), CLOUD, [f'{verb} {thing.id}{shown}'])
            others(action, thing)

        world.reality.changed = changed

    # --- names ------------------------------------------------------------------------------------------------

    def _message(self, world: World, message: MessageInFlight) -> str:
        if message.kind != 'check_resource':
            return message.kind
        return f'check {self._node_named(world, message.traversal_id, message.number)}'

    def _node_named(self, world: World, traversal_id: str, number: int) -> str:
        node = world.store.tables.node.get(traversal_id, {}).get(number)
        return self._node(node) if node is not None else f'node {number}, which is gone'

    def _node(self, node: Node) -> str:
        if node.resource_id is None:
            return node.name or str(node.phase)
        return f'{node.phase} {self._row(node.resource_id, node.name or "")}'

    def _row(self, resource_id: str, name: str) -> str:
        """Return the name of a row: its resource name, with a number for further rows of the same name."""
        if resource_id not in self._names:
            count = sum(known.partition('(')[0] == name for known in self._names.values())
            self._names[resource_id] = f'{name}({count + 1})' if count else name
        return self._names[resource_id]

    def _phrases(self, world: World, decision: Decision[Any]) -> list[str]:
        """Return phrases about the changes of a decision. Rows have their state after it."""
        told: list[str] = []
        for effect in decision.effects:
            told += _PHRASES.get(type(effect), _nothing)(self, world, effect)
        if decision.wake:
            told.append('wakes ' + ', '.join(self._node_named(world, *key) for key in decision.wake))
        return told

    # --- forms ------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return the story in lines: time, actor, event."""
        width = max((len(step.who) for step in self.steps), default=0)
        return '\n'.join(f'{step.at_s:8.1f} s  {step.who:<{width}}  {_sentence(step)}' for step in self.steps)

    def participants(self) -> list[str]:
        """Return all participants, in the order from users to objects."""
        return _participants(self.steps)

    def mermaid(self) -> str:
        """Return the story as a Mermaid sequence diagram."""
        order = {name: number for number, name in enumerate(self.participants())}
        lines = ['sequenceDiagram', *(f'    participant p{number} as {name}' for name, number in order.items())]
        for step in self.steps:
            what = '<br/>'.join(_escaped(phrase) for phrase in step.what)
            who = f'p{order[step.who]}'
            if step.whom in order:
                arrow = '-)' if step.manner is Manner.DELIVERS else '->>'
                lines.append(f'    {who}{arrow}p{order[step.whom]}: {what}')
            else:
                lines.append(f'    Note over {who}: {what}')
        return '\n'.join(lines)


Teller = Callable[[Manner, str, str, Iterable[str]], None]


def _current(world: World) -> str:
    fiber = world.kernel.current
    return fiber.process.name if fiber is not None else 'world'


def _sentence(step: StoryStep) -> str:
    what = '; '.join(step.what)
    match step.manner:
        case Manner.ASKS:
            return f'{what} (sent to {step.whom})'
        case Manner.DELIVERS:
            return f'{what}, to {step.whom}'
        case Manner.COMMITS:
            return f'commits: {what}'
    return what


def _participants(steps: Sequence[StoryStep]) -> list[str]:
    """Return all participants of steps, in the order from users to objects."""
    names = {name for step in steps for name in (step.who, step.whom) if name}
    first, last = ['user', 'engine', 'broker', 'worker'], [ROWS, CLOUD]

    def rank(name: str) -> tuple[int, str]:
        kind = name.partition('-')[0].rstrip('s')
        place = first.index(kind) if kind in first else len(first)
        return (len(first) + 1 + last.index(name) if name in last else place, name)

    return sorted(names, key=rank)


def _escaped(phrase: str) -> str:
    """Escape a phrase: in Mermaid a semicolon ends a statement, and a number sign begins a character code."""
    return phrase.replace('#', 'no. ').replace(';', ',').replace('<', '(').replace('>', ')')


# --- phrases for effects ----------------------------------------------------------------------------------------


def _nothing(story: Story, world: World, effect: Any) -> list[str]:
    return []


def _stack_named(world: World, stack_id: str) -> str:
    stack = world.store.tables.stack.get(stack_id)
    return stack.name if stack is not None else stack_id


def _update_stack(story: Story, world: World, effect: effects.UpdateStack) -> list[str]:
    name, changes = _stack_named(world, effect.stack_id), effect.changes
    told = []
    if 'status' in changes:
        stack = world.store.tables.stack[effect.stack_id]
        told.append(f'stack {name} is {stack.action}_{stack.status}{_because(stack.status, stack.status_reason)}')
    if changes.get('last_good_template_id'):
        told.append('its template is the last good one now')
    if changes.get('deleted_at'):
        told.append(f'stack {name} is gone')
    return told


def _because(status: Status, reason: str) -> str:
    return f' because {reason}' if status is Status.FAILED and reason else ''


def _insert_stack(story: Story, world: World, effect: effects.InsertStack) -> list[str]:
    return [f'new stack {effect.stack.name}']


def _insert_traversal(story: Story, world: World, effect: effects.InsertTraversal) -> list[str]:
    traversal = effect.traversal
    told = [f'plans {traversal.action} of {_stack_named(world, traversal.stack_id)} in {traversal.node_count} nodes']
    ready = [story._node(node) for node in effect.nodes if node.status is NodeStatus.READY]
    return [*told, f'ready: {", ".join(ready)}'] if ready else told


def _end_traversal(story: Story, world: World, effect: effects.EndTraversal) -> list[str]:
    words = {TraversalStatus.SUPERSEDED: 'is superseded', TraversalStatus.CANCELLED: 'is cancelled'}
    if effect.status is TraversalStatus.FAILED:
        return [f'the traversal has failed: {effect.reason}']
    return [f'the traversal before {words[effect.status]}'] if effect.status in words else []


def _begin_cancel(story: Story, world: World, effect: effects.BeginCancel) -> list[str]:
    return ['no new node starts; running nodes may finish']


def _insert_resources(story: Story, world: World, effect: effects.InsertResources) -> list[str]:
    return ['new rows: ' + ', '.join(story._row(row.id, row.name) for row in effect.resources)]


def _update_resource(story: Story, world: World, effect: effects.UpdateResource) -> list[str]:
    row = world.store.tables.resource.get(effect.resource_id)
    if row is None:
        return []
    name, changes = story._row(row.id, row.name), effect.changes
    told = []
    if changes.get('owner'):
        told.append(f'takes {name}, fence {row.fence}')
    if 'status' in changes:
        told.append(f'{name} is {row.action}_{row.status}{_because(row.status, row.status_reason)}')
    if changes.get('handover'):
        told.append(f'{name} is {changes["handover"]}')
    if changes.get('replaced_by'):
        told.append(f'{name} is replaced')
    if changes.get('physical_id') and row.action is Action.CREATE:
        told.append(f'{name} is {row.physical_id}')
    if changes.get('wake_at'):
        told.append(f'{name} waits in its row')
    if 'owner' in changes and changes['owner'] is None:
        told.append(f'releases {name}')
    return told


def _delete_resource(story: Story, world: World, effect: effects.DeleteResource) -> list[str]:
    return [f'removes the row of {story._row(effect.resource_id, effect.resource_id)}']


def _finish_node(story: Story, world: World, effect: effects.FinishNode) -> list[str]:
    nodes = world.store.tables.node.get(effect.traversal_id, {})
    done = [effect.number] if effect.last is None else [effect.number, effect.last]
    told = [f'{story._node_named(world, effect.traversal_id, number)} is done' for number in done]
    followers = [nodes[number] for number in effect.required_by if number in nodes]
    ready = [story._node(node) for node in followers if node.status is NodeStatus.READY]
    return [*told, f'ready: {", ".join(ready)}'] if ready else told


def _fail_node(story: Story, world: World, effect: effects.FailNode) -> list[str]:
    return [f'{story._node_named(world, effect.traversal_id, effect.number)} has failed']


def _point_node(story: Story, world: World, effect: effects.PointNode) -> list[str]:
    row = world.store.tables.resource[effect.resource_id]
    return [f'the node of {row.name} works on {story._row(row.id, row.name)}']


def _append_cleanup(story: Story, world: World, effect: effects.AppendCleanup) -> list[str]:
    return [f'one more node: {story._node(effect.node)}']


_PHRASES: dict[type, Callable[[Story, World, Any], list[str]]] = {
    effects.InsertStack: _insert_stack,
    effects.UpdateStack: _update_stack,
    effects.InsertTraversal: _insert_traversal,
    effects.EndTraversal: _end_traversal,
    effects.BeginCancel: _begin_cancel,
    effects.InsertResources: _insert_resources,
    effects.UpdateResource: _update_resource,
    effects.DeleteResource: _delete_resource,
    effects.FinishNode: _finish_node,
    effects.FailNode: _fail_node,
    effects.PointNode: _point_node,
    effects.AppendCleanup: _append_cleanup,
}
