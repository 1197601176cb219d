"""``OS::Heat::Stack`` and ``AWS::CloudFormation::Stack``: a template that stands in a property."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from typing_extensions import override

from convergence.core.model import Json, Path
from convergence.resources.attributes import attr
from convergence.resources.constraints import Range
from convergence.resources.contract import Call, FinalFailure
from convergence.resources.nested import NestedType
from convergence.resources.nesting import DesiredStack, NestingContext, SampleTemplate
from convergence.resources.schema import prop
from convergence.resources.support import since
from convergence.template import has_unknown

P = TypeVar('P')

OUTPUTS = 'Outputs.'


@dataclass(frozen=True)
class StackContext:
    """The place of the stack."""

    region_name: str | None = prop(None, description='The region.')
    credential_secret_id: str | None = prop(
        None,
        update_allowed=True,
        support=since('12.0.0'),
        description='Where the credential for another cloud is.',
    )
    ca_cert: str | None = prop(
        None,
        update_allowed=True,
        support=since('12.0.0'),
        description='The certificate of the authority that the other cloud trusts.',
    )
    insecure: bool = prop(False, update_allowed=True, support=since('12.0.0'), description='Accept any certificate.')


@dataclass(frozen=True)
class StackProperties:
    """See the descriptions of the fields."""

    template: str = prop(update_allowed=True, description='The template of the stack.')
    context: StackContext | None = prop(
        None, update_allowed=True, description='Another region or cloud, which is refused: stacks are made here.'
    )
    parameters: dict[str, Json] = prop({}, update_allowed=True, description='The parameters of the stack.')
    timeout: int | None = prop(
        None,
        update_allowed=True,
        constraints=[Range(minimum=1)],
        description='How many minutes each of its operations may take.',
    )

    def __post_init__(self) -> None:
        elsewhere = self.context
        if elsewhere is not None and (elsewhere.region_name or elsewhere.credential_secret_id):
            raise ValueError(
                'context: a stack in another region or cloud is not supported. Leave the property out to have the '
                'stack made here, or create it there.'
            )


@dataclass(frozen=True)
class NestedStackAttributes:
    """The attributes of a nested stack, besides ``resource.<name>``."""

    beginnings: ClassVar[tuple[str, ...]] = ('resource.',)

    stack_name: str = attr('The name of the stack.', of=())
    outputs: dict[str, Json] = attr('Its outputs, by name.')


class StackResource(NestedType[StackProperties]):
    """A stack whose template is a property."""

    Properties: ClassVar[type[Any]] = StackProperties
    Attributes: ClassVar[type[Any] | None] = NestedStackAttributes

    @override
    def wanted(self, call: Call[StackProperties], context: NestingContext) -> DesiredStack:
        """Return the stack that the properties describe."""
        given = call.properties
        return DesiredStack(
            given.template,
            given.parameters,
            hidden=_hidden(given.parameters, 'parameters', context.masked_paths),
            timeout_mins=given.timeout,
        )

    @override
    def foreseen(
        self, properties: Mapping[str, Any], files: Mapping[str, str], masked_paths: Sequence[Path]
    ) -> Iterable[SampleTemplate]:
        """The template, if it is known."""
        text = properties.get('template')
        if isinstance(text, str):
            yield _foreseen(('template',), text, properties.get('parameters'), 'parameters', masked_paths)

    @override
    def attribute(self, call: Call[StackProperties], name: str) -> Json:
        """Return the name, the outputs, or a value of a resource of the stack."""
        return call.nested.values().name if name == 'stack_name' else super().attribute(call, name)


@dataclass(frozen=True)
class AwsStackProperties:
    """See the descriptions of the fields."""

    template_url: str = prop(
        name='TemplateURL', update_allowed=True, description='The name of the template among the files of the request.'
    )
    timeout_in_minutes: int | None = prop(
        None,
        name='TimeoutInMinutes',
        update_allowed=True,
        constraints=[Range(minimum=1)],
        description='How many minutes each of its operations may take.',
    )
    parameters: dict[str, Json] | None = prop(
        None, name='Parameters', update_allowed=True, description='The parameters of the stack.'
    )


@dataclass(frozen=True)
class AwsStackAttributes:
    """The attributes of the stack: ``Outputs.<name>``."""

    beginnings: ClassVar[tuple[str, ...]] = (OUTPUTS,)


class AwsStack(NestedType[AwsStackProperties]):
    """A stack whose template is a file of the request, in the words of CloudFormation."""

    Properties: ClassVar[type[Any]] = AwsStackProperties
    Attributes: ClassVar[type[Any] | None] = AwsStackAttributes

    @override
    def wanted(self, call: Call[AwsStackProperties], context: NestingContext) -> DesiredStack:
        """The file, with the parameters."""
        given = call.properties
        parameters = given.parameters or {}
        return DesiredStack(
            _file(given.template_url, context.files),
            parameters,
            hidden=_hidden(parameters, 'Parameters', context.masked_paths),
            timeout_mins=given.timeout_in_minutes,
        )

    @override
    def foreseen(
        self, properties: Mapping[str, Any], files: Mapping[str, str], masked_paths: Sequence[Path]
    ) -> Iterable[SampleTemplate]:
        """The file, if it is known which.

        :raises FinalFailure: there is no such file.
        """
        url = properties.get('TemplateURL')
        if isinstance(url, str):
            text = _file(url, files)
            yield _foreseen(('TemplateURL',), text, properties.get('Parameters'), 'Parameters', masked_paths)

    @override
    def attribute(self, call: Call[AwsStackProperties], name: str) -> Json:
        """An output."""
        return super().attribute(call, name.removeprefix(OUTPUTS))


def _file(url: str, files: Mapping[str, str]) -> str:
    if url not in files:
        raise FinalFailure(
            f'TemplateURL: {url} is not among the files of the request. Nothing is fetched from elsewhere: send the '
            'template along under that name.'
        )
    return files[url]


def _foreseen(path: Path, text: str, parameters: Any, key: str, masked_paths: Sequence[Path]) -> SampleTemplate:
    known = parameters if isinstance(parameters, dict) else {}
    # Each value is checked against the declaration, and so it has to be known as a whole.
    given = {name: value for name, value in known.items() if not has_unknown(value)}
    return SampleTemplate(path, (), DesiredStack(text, given, hidden=_hidden(given, key, masked_paths)))


def _hidden(parameters: Mapping[str, Json], key: str, masked_paths: Iterable[Path]) -> frozenset[str]:
    below = [path[1:] for path in masked_paths if path and path[0] == key]
    return frozenset(parameters) if () in below else frozenset(str(path[0]) for path in below)
