"""Values that are quickly made are as frozen, and as equal, as any frozen dataclass."""

import copy
import inspect
from dataclasses import FrozenInstanceError, dataclass, field

import pytest

from convergence.values import copied, quickly_made, replace


@dataclass(frozen=True, slots=True)
class Slow:
    """What dataclasses make of it."""

    key: str
    size: int = 1
    tags: dict[str, int] = field(default_factory=dict)


@quickly_made
@dataclass(frozen=True, slots=True)
class Quick:
    """The same, quickly made."""

    key: str
    size: int = 1
    tags: dict[str, int] = field(default_factory=dict)


def test_it_is_made_as_any_dataclass_is() -> None:
    """By place or by name, with its defaults; and its signature can be read."""
    assert inspect.signature(Quick) == inspect.signature(Slow)
    assert Quick('a') == Quick(key='a', size=1, tags={})
    assert repr(Quick('a', 2)) == "Quick(key='a', size=2, tags={})"
    assert type(Quick('a')) is Quick
    with pytest.raises(TypeError, match='key'):
        Quick()  # type: ignore[call-arg]


def test_each_value_has_defaults_of_its_own() -> None:
    """What a factory makes is made anew, and not where something is given."""
    assert Quick('a').tags is not Quick('a').tags
    given = {'x': 1}
    assert Quick('a', tags=given).tags is given


@pytest.mark.parametrize('value', [Quick('a'), replace(Quick('b'), key='a'), copy.deepcopy(Quick('a'))])
def test_it_is_frozen(value: Quick) -> None:
    """However it has come about, nobody changes it."""
    with pytest.raises(FrozenInstanceError):
        value.key = 'b'  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del value.key
    assert value == Quick('a')


@pytest.mark.parametrize('kind', [Slow, Quick])
def test_a_copy_has_what_is_changed_and_shares_the_rest(kind: type[Slow]) -> None:
    """The value that it is made from stays as it was."""
    before = kind('a', 2)
    after = replace(before, size=3)
    assert (type(after), after) == (kind, kind('a', 3))
    assert after.tags is before.tags
    assert before == kind('a', 2)
    assert copied(before, {'key': 'c'}) == kind('c', 2)


def test_a_copy_has_no_field_that_its_class_does_not_have() -> None:
    """Nor does a wrong name go by unseen."""
    with pytest.raises(AttributeError):
        copied(Quick('a'), {'colour': 'red'})


def test_what_is_more_than_its_fields_is_refused() -> None:
    """Its own way of being made would be left out."""

    @dataclass(frozen=True, slots=True)
    class Counting:
        key: str

        def __post_init__(self) -> None:
            raise AssertionError

    with pytest.raises(TypeError, match='Counting is more than its fields'):
        quickly_made(Counting)
