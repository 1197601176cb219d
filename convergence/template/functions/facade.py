"""The function that reads the resource that a template implements."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.template.encoding import call, encode
from convergence.template.functions.base import Compiling, Evaluating, EvaluationFailed, Function, NotYetKnown

METADATA = 'metadata'
HIDDEN = 'hidden'
"""The key for secret metadata, beside the parts of the resource."""


class ResourceFacade(Function):
    """Metadata or a policy of the resource, in the parent template, that stands for this template."""

    name: ClassVar[str] = 'resource_facade'
    code: ClassVar[str] = 'resource_facade'
    known: ClassVar[tuple[str, ...]] = (METADATA, 'deletion_policy', 'update_policy')

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Return the part of the resource; a remaining call while the template is only inspected.

        :raises EvaluationFailed: the template is not nested, so it implements no resource.
        """
        if argument not in self.known:
            raise EvaluationFailed(f'{self.name} needs one of {", ".join(self.known)}.')
        part = ResourceFacade.known[self.known.index(str(argument))]
        if part in scope.facade:
            if part == METADATA and scope.facade.get(HIDDEN):
                scope.hidden_reads.note()
            return encode(scope.facade[part], scope.budget, f'{self.name} of {argument}')
        if scope.facade and scope.inspecting:
            return call(self.code, [argument])  # The resource exists, but the part is not known yet.
        remaining = call(self.code, argument)
        if not scope.inspecting:
            self.evaluate(argument, Evaluating({}, scope.budget))
        return remaining

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Fail: there is no value, or it is not known yet.

        :raises EvaluationFailed: always.
        """
        if isinstance(argument, list):
            raise NotYetKnown(f'{self.name}: {argument[0]} of the resource is not known yet')
        raise EvaluationFailed(
            f'{self.name} gives the {argument} of the resource that stands for this template in a parent template; '
            'a template that is not nested in another one has none.'
        )


class CloudResourceFacade(ResourceFacade):
    """Metadata or a policy of the resource, in the parent template, that stands for this template."""

    name: ClassVar[str] = 'Fn::ResourceFacade'
    known: ClassVar[tuple[str, ...]] = ('Metadata', 'DeletionPolicy', 'UpdatePolicy')
