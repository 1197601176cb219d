"""The local provider of a process: whether it may be there, and what an operator must know of it."""

from __future__ import annotations

import logging
import os
import pwd

from convergence.config import Settings
from convergence.errors import ConfigurationError
from convergence.resources.builtin.local.provider import LocalProvider

LOG = logging.getLogger(__name__)


def local_provider(settings: Settings) -> LocalProvider | None:
    """The local provider, if the configuration enables it. Each time a warning says what that amounts to.

    :raises ConfigurationError: Keystone lets others in, and the configuration does not say that they may have it; or
        the root or a program cannot be used.
    """
    local = settings.local_provider
    if not local.enabled:
        return None
    if settings.api.authentication == 'keystone' and not local.allow_with_keystone:
        raise ConfigurationError(
            '[local_provider] enabled = true lets people run programs on this machine as the user of the service, and '
            '[api] authentication = keystone lets everybody of a cloud in. Disable the local provider, or set '
            '[local_provider] allow_with_keystone = true; the policy rules resource_types:Convergence::Local::* then '
            'decide who may use it.'
        )
    addresses = frozenset(local.check_addresses)
    programs = {name: str(path) for name, path in local.programs.items()}
    provider = (
        LocalProvider(local.root, programs, addresses)
        if programs
        else LocalProvider(local.root, check_addresses=addresses)
    )
    LOG.warning('%s', what_it_allows(provider))
    return provider


def what_it_allows(provider: LocalProvider) -> str:
    """Return one sentence about the rights of templates through the local provider of this process."""
    programs = ', '.join(f'{name} ({path})' for name, path in sorted(provider.programs.items()))
    return (
        f'The local provider is enabled: templates can run programs as the user {_user()} of this machine, with all '
        f'that this user may do: {programs}. They write below {provider.root}. To disable it, set [local_provider] '
        'enabled = false.'
    )


def _user() -> str:
    uid = os.geteuid()
    try:
        return f'{pwd.getpwuid(uid).pw_name} (uid {uid})'
    except KeyError:
        return f'with uid {uid}'
