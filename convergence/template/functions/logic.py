"""Functions of conditions, and functions that depend on them."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from convergence.core.model import Json, Path
from convergence.template.encoding import call, escaped
from convergence.template.functions.base import (
    DROPPED,
    Compiling,
    Evaluating,
    EvaluationFailed,
    Folding,
    Function,
    is_call,
    type_name,
)


class If(Function):
    """One of two values, depending on a condition. The other one is not evaluated."""

    name: ClassVar[str] = 'if'
    code: ClassVar[str] = 'if'
    lengths: ClassVar[tuple[int, ...]] = (3,)
    form: ClassVar[str] = 'a list: a condition, the value if it is true, and the value if it is false'

    @override
    def read(self, argument: Json, path: Path, scope: Compiling, folding: Folding) -> Json:
        """Return the chosen value, or the whole call while the condition is not known."""
        if not isinstance(argument, list) or len(argument) not in self.lengths:
            raise EvaluationFailed(f'{self.name} needs {self.form}.')
        reads = scope.hidden_reads.count
        condition = folding.condition(argument[0], (*path, 0), scope)
        if scope.hidden_reads.count != reads and len(argument) == 2:
            scope.hidden_reads.left_out += 1
        if isinstance(condition, bool):
            chosen = 1 if condition else 2
            return folding.fold(argument[chosen], (*path, chosen), scope) if chosen < len(argument) else DROPPED
        values = [folding.fold(value, (*path, index), scope) for index, value in enumerate(argument[1:], 1)]
        return call(self.code, [condition, *(None if value is DROPPED else value for value in values)])

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the value that was chosen."""
        assert isinstance(argument, list)
        condition, *values = argument
        return values[0] if condition else (values[1] if len(values) > 1 else None)


class IfOrNothing(If):
    """One of two values, depending on a condition. Without a second one, the enclosing item is left out."""

    lengths: ClassVar[tuple[int, ...]] = (2, 3)
    form: ClassVar[str] = 'a list: a condition, the value if it is true, and maybe the value if it is false'


class Equals(Function):
    """True if two values are equal."""

    name: ClassVar[str] = 'equals'
    code: ClassVar[str] = 'equals'

    @override
    def check(self, argument: Json) -> None:
        """Require two values."""
        if not is_call(argument) and not (isinstance(argument, list) and len(argument) == 2):
            raise EvaluationFailed(f'{self.name} needs a list of two values.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return True if they are equal."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        return argument[0] == argument[1]


class _Logic(Function):
    """A function of conditions, each of which may be given by its name."""

    @override
    def read(self, argument: Json, path: Path, scope: Compiling, folding: Folding) -> Json:
        """Return a boolean, or a call that remains while a condition is not known."""
        operands = self.operands(argument)
        paths = [(*path, index) for index in range(len(operands))] if isinstance(argument, list) else [path]
        conditions = [folding.condition(node, where, scope) for node, where in zip(operands, paths, strict=True)]
        return self.fold([*conditions], not any(map(is_call, conditions)), scope)

    @override
    def operands(self, argument: Json) -> list[Json]:
        """The conditions.

        :raises EvaluationFailed: the argument has not the right form.
        """
        if not isinstance(argument, list) or len(argument) < 2:
            raise EvaluationFailed(f'{self.name} needs a list of two or more conditions.')
        return argument


class And(_Logic):
    """True if all conditions are true."""

    name: ClassVar[str] = 'and'
    code: ClassVar[str] = 'and'

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return True if all are true."""
        assert isinstance(argument, list)
        return all(argument)


class Or(_Logic):
    """True if any condition is true."""

    name: ClassVar[str] = 'or'
    code: ClassVar[str] = 'or'

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return True if any is true."""
        assert isinstance(argument, list)
        return any(argument)


class Not(_Logic):
    """True if a condition is false."""

    name: ClassVar[str] = 'not'
    code: ClassVar[str] = 'not'

    @override
    def operands(self, argument: Json) -> list[Json]:
        """The condition.

        :raises EvaluationFailed: a list was given.
        """
        if isinstance(argument, list):
            raise EvaluationFailed(f'{self.name} needs one condition, not a list.')
        return [argument]

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return True if it is false."""
        assert isinstance(argument, list)
        return not argument[0]


class Contains(Function):
    """True if a list contains a value, or a text contains another one."""

    name: ClassVar[str] = 'contains'
    code: ClassVar[str] = 'contains'

    @override
    def check(self, argument: Json) -> None:
        """Check for a value, and a list or text."""
        if is_call(argument):
            return
        if not isinstance(argument, list) or len(argument) != 2:
            raise EvaluationFailed('contains needs a list: a value, and the list to look for it in.')
        if not (is_call(argument[1]) or isinstance(argument[1], list | str)):
            raise EvaluationFailed(f'contains: the second argument must be a list, not {type_name(argument[1])}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return True if it is there."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        value, sequence = argument
        if isinstance(sequence, str):
            if not isinstance(value, str):
                raise EvaluationFailed(f'contains: only a string can be in a string, not {type_name(value)}.')
            return value in sequence
        assert isinstance(sequence, list)
        scope.budget.spend_steps(len(sequence), self.name)
        return value in sequence


# --- as CloudFormation writes them ----------------------------------------------------------------------------


class CloudIf(If):
    """One of two values, depending on a condition. The other one is not evaluated."""

    name: ClassVar[str] = 'Fn::If'


class CloudEquals(Equals):
    """True if two values are equal."""

    name: ClassVar[str] = 'Fn::Equals'


class CloudAnd(And):
    """True if all conditions are true."""

    name: ClassVar[str] = 'Fn::And'


class CloudOr(Or):
    """True if any condition is true."""

    name: ClassVar[str] = 'Fn::Or'


class CloudNot(Not):
    """True if a condition is false."""

    name: ClassVar[str] = 'Fn::Not'

    @override
    def operands(self, argument: Json) -> list[Json]:
        """The condition, the only item of a list.

        :raises EvaluationFailed: something else was given.
        """
        if not isinstance(argument, list) or len(argument) != 1:
            raise EvaluationFailed(f'{self.name} needs a list of one condition.')
        return argument


class NamedCondition(Function):
    """The condition of a name."""

    name: ClassVar[str] = 'Condition'

    @override
    def read(self, argument: Json, path: Path, scope: Compiling, folding: Folding) -> Json:
        """Return a boolean, or a call that remains."""
        if not isinstance(argument, str):
            raise EvaluationFailed('Condition needs the name of a condition.')
        return folding.condition(argument, path, scope)

    @override
    def operands(self, argument: Json) -> list[Json]:
        """The name."""
        return [argument]
