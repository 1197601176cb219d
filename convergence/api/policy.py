"""Who may do what: a rule for each route, with its default. Operators put other rules into policy.yaml.

The names are those that the field's operators know. What a rule is asked about has one attribute, `project_id`: the
project whose stacks are concerned.

Rules for resource types, ``resource_types:<type>``, belong to no route. Which types a template really uses an engine
finds out, for an environment may let a name stand for another; so the answers of all such rules travel with a request.
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
"""Beginning of the rules for resource types. Behind it: a type, or the beginning of types and a star."""

_BASES = (
    policy.RuleDefault(ADMIN, 'role:admin', description='Is shown what concerns the whole installation.'),
    policy.RuleDefault(
        MEMBER,
        '(role:member or role:admin) and project_id:%(project_id)s',
        description='May change what belongs to its project.',
    ),
    policy.RuleDefault(
        READER,
        '(role:reader or role:member or role:admin) and project_id:%(project_id)s',
        description='May look at what belongs to its project.',
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
        description='May use resource types for which no other rule is more exact. A type has the rule '
        '"resource_types:A::B::C", else that of "resource_types:A::B::*", else of "resource_types:A::*". Who may not '
        'use a type cannot create, update, adopt, restore, preview or validate a stack with it, and is not shown it.',
    ),
    policy.RuleDefault(
        f'{TYPES}Convergence::Local::*',
        f'rule:{ADMIN}',
        description='May make files and run programs on the machine of the worker, as the user of the worker, where '
        '[local_provider] offers that.',
    ),
)


def _rules() -> list[policy.RuleDefault]:
    found = {f'{noun}:{verb}': f'rule:{READER}' for noun, verbs in _READ.items() for verb in verbs.split()}
    found |= {f'{noun}:{verb}': f'rule:{MEMBER}' for noun, verbs in _WRITE.items() for verb in verbs.split()}
    routes = (policy.RuleDefault(name, check) for name, check in {**found, **_OTHERS}.items())
    return [*_BASES, *routes, *_TYPES]


def list_rules() -> list[policy.RuleDefault]:
    """All rules with their defaults, for ``oslopolicy-sample-generator``; those of routes say which routes."""
    paths: dict[str, list[Any]] = {}
    for route in ROUTES:  # those that a signature opens have no rule, which is in no policy either
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
    """Decides by the rules.

    :param enforcer: an `oslo_policy.policy.Enforcer` without rules; it may read a file.
    """

    def __init__(self, enforcer: Any) -> None:
        self._enforcer = enforcer
        enforcer.register_defaults(_rules())

    def check(self, rule: str, context: RequestContext, project_id: str) -> None:
        """Refuse what the caller may not do with a project.

        :raises Forbidden: the rule says no.
        """
        if not self.allows(rule, context, project_id):
            raise Forbidden(f'You are not authorized to complete this action: {rule}.')

    def type_rules(self, context: RequestContext, project_id: str) -> dict[str, bool]:
        """What the rules for resource types, the operator's among them, say to the caller: by type or beginning."""
        target: Mapping[str, str] = {'project_id': project_id}
        self._enforcer.load_rules()
        return {
            rule.removeprefix(TYPES): bool(self._enforcer.enforce(rule, target, context))
            for rule in list(self._enforcer.rules)
            if rule.startswith(TYPES)
        }

    def allows(self, rule: str, context: RequestContext, project_id: str) -> bool:
        """Whether the caller may do something with a project."""
        target: Mapping[str, str] = {'project_id': project_id}
        return bool(self._enforcer.authorize(rule, target, context))
