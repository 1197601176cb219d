"""Templates, resource types and the installation: what concerns no stack."""

from __future__ import annotations

from convergence import __version__, errors
from convergence.api import submissions
from convergence.api.calls import Answer, Call
from convergence.api.faults import bad_request
from convergence.rpc.engine_api import EngineApi


def validate(call: Call) -> Answer:
    """What a template declares, or what is wrong with it."""
    ignored = call.query.text('ignore_errors')
    document = call.ask(
        EngineApi.validate_template,
        template=submissions.template(call.body),
        show_nested=call.query.flag('show_nested'),
        ignorable_errors=ignored.split(',') if ignored else None,
        **submissions.arguments(call.body),
    )
    if 'Error' in document:
        raise errors.StackValidationFailed(document['Error'])
    return Answer(document)


def resource_types(call: Call) -> Answer:
    """The resource types, names only or with descriptions."""
    return Answer(
        {
            'resource_types': call.ask(
                EngineApi.list_resource_types,
                support_status=call.query.text('support_status'),
                type_name=call.query.text('name'),
                with_description=call.query.flag('with_description'),
            )
        }
    )


def resource_type(call: Call) -> Answer:
    """Properties and attributes of a resource type."""
    with_description = call.query.flag('with_description')
    return Answer(
        call.ask(EngineApi.resource_schema, type_name=call.path['type_name'], with_description=with_description)
    )


def type_template(call: Call) -> Answer:
    """A template with a resource of a type."""
    kind = call.query.text('template_type') or 'cfn'
    if kind not in ('cfn', 'hot'):
        raise bad_request(f'template_type must be cfn or hot, not {kind}')
    return Answer(call.ask(EngineApi.generate_template, type_name=call.path['type_name'], template_type=kind))


def template_versions(call: Call) -> Answer:
    """The versions of the template language."""
    return Answer({'template_versions': call.ask(EngineApi.list_template_versions)})


def template_functions(call: Call) -> Answer:
    """The functions of a version of the template language."""
    functions = call.ask(
        EngineApi.list_template_functions,
        template_version=call.path['template_version'],
        with_condition=call.query.flag('with_condition_func'),
    )
    return Answer({'template_functions': functions})


def build_info(call: Call) -> Answer:
    """The versions of the API and of the engine that answers."""
    return Answer({'api': {'revision': __version__}, 'engine': {'revision': call.ask(EngineApi.get_revision)}})


def services(call: Call) -> Answer:
    """The processes of the installation, and whether they are alive."""
    return Answer({'services': call.ask(EngineApi.list_services)})
