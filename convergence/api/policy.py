"""Permissions: a rule with its default for each route. Operators override rules in policy.yaml.

The names are those of Heat. The target of a rule has one attribute, `project_id`: the project of the stacks.

Rules for resource types, ``resource_types:<type>``, belong to no route. Only an engine knows the types of a template,
because an environment may map a name to another type; so each request carries the results of all such rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_context.context import RequestContext
from oslo_policy import policy

from convergence.api.routes import ROUTES
from convergence.errors import Forbidden

READER, MEMBER, ADMIN = 'project_reader', 'project_member', 'context_is_admin'
NOBODY, ANYBODY = '!', '@'
TYPES = 'resource_types:'
"""Prefix of the rules for resource types. A type follows, or a prefix of types and a star."""

_BASES = (
    policy.RuleDefault(ADMIN, 'role:admin', description='May read data of the whole installation.'),
    policy.RuleDefault(
        MEMBER,
        '(role:member or role:admin) and project_id:%(project_id)s',
        description='May change objects of its project.',
    ),
    policy.RuleDefault(
        READER,
        '(role:reader or role:member or role:admin) and project_id:%(project_id)s',
        description='May read objects of its project.',
    ),
)

_READ = {
    'stacks': (
        'index detail lookup show template environment files list_outputs show_output explain drift graph traversals '
        'list_snapshots show_snapshot validate_template list_resource_types resource_schema generate_template '
        'list_template_versions list_template_functions'
    ),
    'resource': 'index show metadata',
    'events': 'index show',
    'build_info': 'build_info',
    'software_configs': 'index show',
    'software_deployments': 'index show metadata',
    'webhooks': 'index show',
}
_WRITE = {
    'stacks': (
        'create update update_patch delete abandon export preview preview_update preview_update_patch preview_rollback '
        'snapshot delete_snapshot restore_snapshot observe drift_policy'
    ),
    'actions': 'action suspend resume check rollback cancel_update cancel_without_rollback',
    'resource': 'signal signal_url mark_unhealthy repair accept',
    'software_configs': 'create delete',
    'software_deployments': 'create update delete',
    'webhooks': 'create delete test',
}
_OTHERS = {
    'stacks:global_index': NOBODY,
    'software_configs:global_index': NOBODY,
    'service:index': f'rule:{ADMIN}',
}


_TYPES = (
    policy.RuleDefault(
        f'{TYPES}*',
        ANYBODY,
        description='May use resource types without a more specific rule. The rule of a type is '
        '"resource_types:A::B::C", else "resource_types:A::B::*", else "resource_types:A::*". Without permission '
        'for a type a user cannot create, update, adopt, restore, preview or validate a stack with it, nor list it.',
    ),
    policy.RuleDefault(
        f'{TYPES}Convergence::Local::*',
        f'rule:{ADMIN}',
        description='May create files and run programs on the machine of the worker, as the user of the worker, if '
        '[local_provider] is enabled.',
    ),
)


def _rules() -> list[policy.RuleDefault]:
    found = {f'{noun}:{verb}': f'rule:{READER}' for noun, verbs in _READ.items() for verb in verbs.split()}
    found |= {f'{noun}:{verb}': f'rule:{MEMBER}' for noun, verbs in _WRITE.items() for verb in verbs.split()}
    routes = (policy.RuleDefault(name, check) for name, check in {**found, **_OTHERS}.items())
    return [*_BASES, *routes, *_TYPES]


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with defaults and routes, for ``oslopolicy-sample-generator``."""
    paths: dict[str, list[Any]] = {}
    for route in ROUTES:  # signed routes have the rule "", which no policy contains
        paths.setdefault(route.rule, []).append({'method': route.method, 'path': route.template})
    return [
        policy.DocumentedRuleDefault(rule.name, rule.check_str, _about(rule.name), paths[rule.name])
        if rule.name in paths
        else rule
        for rule in _rules()
    ]


def _about(name: str) -> str:
    return ' '.join(dict.fromkeys(route.summary for route in ROUTES if route.rule == name))


class Policy:
    """Enforces the rules.

    :param enforcer: an `oslo_policy.policy.Enforcer` without rules; it may read a file.
    """

    def __init__(self, enforcer: Any) -> None:
        self._enforcer = enforcer
        enforcer.register_defaults(_rules())

    def check(self, rule: str, context: RequestContext, project_id: str) -> None:
        """Check that a rule permits the caller an action on a project.

        :raises Forbidden: the rule denies it.
        """
        if not self.allows(rule, context, project_id):
            raise Forbidden(f'You are not authorized to complete this action: {rule}.')

    def type_rules(self, context: RequestContext, project_id: str) -> dict[str, bool]:
        """Return the results of all rules for resource types for the caller, by type or prefix."""
        target: Mapping[str, str] = {'project_id': project_id}
        self._enforcer.load_rules()
        return {
            rule.removeprefix(TYPES): bool(self._enforcer.enforce(rule, target, context))
            for rule in list(self._enforcer.rules)
            if rule.startswith(TYPES)
        }

    def allows(self, rule: str, context: RequestContext, project_id: str) -> bool:
        """Return True if a rule permits the caller an action on a project."""
        target: Mapping[str, str] = {'project_id': project_id}
        return bool(self._enforcer.authorize(rule, target, context))
