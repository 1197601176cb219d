"""Endpoints without a stack: templates, resource types, the installation."""

from __future__ import annotations

from convergence import __version__, errors
from convergence.api import submissions
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.faults import bad_request
from convergence.api.user_credentials import query_with_user_credentials
from convergence.rpc.engine_api import EngineApi


def validate(call: ApiCall) -> ApiAnswer:
    """Validate a template: its declarations, or its problems; ``Warnings`` lists suspicious parts."""
    ignored = call.query.text('ignore_errors')
    arguments = {
        'template': submissions.template(call.body),
        'show_nested': call.query.flag('show_nested'),
        'ignorable_errors': ignored.split(',') if ignored else None,
        **submissions.arguments(call.body),
    }
    document = query_with_user_credentials(
        call, lambda credentials: call.ask(EngineApi.validate_template, **arguments, credentials=credentials)
    )
    if 'Error' in document:
        raise errors.StackValidationFailed(document['Error'])
    return ApiAnswer(document)


def resource_types(call: ApiCall) -> ApiAnswer:
    """List the resource types, as names or with descriptions."""
    return ApiAnswer(
        {
            'resource_types': call.ask(
                EngineApi.list_resource_types,
                support_status=call.query.text('support_status'),
                type_name=call.query.text('name'),
                with_description=call.query.flag('with_description'),
            )
        }
    )


def resource_type(call: ApiCall) -> ApiAnswer:
    """Show the properties and attributes of a resource type."""
    with_description = call.query.flag('with_description')
    return ApiAnswer(
        call.ask(EngineApi.resource_schema, type_name=call.path['type_name'], with_description=with_description)
    )


def type_template(call: ApiCall) -> ApiAnswer:
    """Generate a template with one resource of a type."""
    kind = call.query.text('template_type') or 'cfn'
    if kind not in ('cfn', 'hot'):
        raise bad_request(f'template_type must be cfn or hot, not {kind}')
    return ApiAnswer(call.ask(EngineApi.generate_template, type_name=call.path['type_name'], template_type=kind))


def template_versions(call: ApiCall) -> ApiAnswer:
    """List the versions of the template language."""
    return ApiAnswer({'template_versions': call.ask(EngineApi.list_template_versions)})


def template_functions(call: ApiCall) -> ApiAnswer:
    """List the functions of a version of the template language."""
    functions = call.ask(
        EngineApi.list_template_functions,
        template_version=call.path['template_version'],
        with_condition=call.query.flag('with_condition_func'),
    )
    return ApiAnswer({'template_functions': functions})


def build_info(call: ApiCall) -> ApiAnswer:
    """Show the versions of the API and of the answering engine."""
    return ApiAnswer({'api': {'revision': __version__}, 'engine': {'revision': call.ask(EngineApi.get_revision)}})


def services(call: ApiCall) -> ApiAnswer:
    """List the processes of the installation with their health."""
    return ApiAnswer({'services': call.ask(EngineApi.list_services)})
