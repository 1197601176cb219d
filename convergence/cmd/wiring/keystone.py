"""Keystone as processes ask it about credentials of stacks: from ``[credentials]`` and ``[trustee]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from convergence.config import CredentialSettings, Settings
from convergence.credentials.issuing import Issuer
from convergence.credentials.model import Method
from convergence.db.schema.sealing import Seal
from convergence.errors import ConfigurationError
from convergence.settings.credentials import TRUSTEE

if TYPE_CHECKING:
    from convergence.credentials.keystone import Keystone


def keystone_of(settings: CredentialSettings, conf: cfg.ConfigOpts = cfg.CONF) -> Keystone | None:
    """The Keystone that is configured; None where stacks get no credentials. This sends no request.

    :param conf: filled; keystoneauth1 reads its own options from it.
    :raises ConfigurationError: keystoneauth1 is not installed, or ``[trustee]`` does not say who that is.
    """
    if settings.method == Method.NONE:
        return None
    try:
        from keystoneauth1 import exceptions, loading

        from convergence.credentials.keystone import Keystone
    except ImportError:
        raise ConfigurationError(
            f'[credentials] method = {settings.method} needs keystoneauth1: '
            'pip install convergence-orchestration[keystone].'
        ) from None
    loading.register_auth_conf_options(conf, TRUSTEE)
    loading.register_session_conf_options(conf, TRUSTEE)

    def open_session(auth: Any = None, **more: Any) -> Any:
        timeout_s = conf[TRUSTEE].timeout or settings.timeout_s
        plugin = auth or loading.load_auth_from_conf_options(conf, TRUSTEE, **more)
        return loading.load_session_from_conf_options(conf, TRUSTEE, auth=plugin, timeout=timeout_s)

    try:
        if open_session().auth is None:
            raise ConfigurationError(
                f'[credentials] method = {settings.method} needs the section [trustee]: auth_type = password, '
                'auth_url, username, password and user_domain_name of the account that acts for users; or '
                'auth_section = keystone_authtoken.'
            )
        found = Keystone(open_session)
        if not found.auth_url:
            raise ConfigurationError('[trustee] auth_url is not set; it says where Keystone is.')
    except (exceptions.ClientException, cfg.Error) as error:
        raise ConfigurationError(f'[trustee] cannot be used: {error}') from None
    return found


def issuer_of(settings: Settings, seal: Seal | None, conf: cfg.ConfigOpts = cfg.CONF) -> Issuer | None:
    """Return the issuer of credentials for the API; None where stacks get none.

    :param seal: the one of the database; None: none is known here.
    :raises ConfigurationError: the options contradict each other.
    """
    configured = settings.credentials
    found = keystone_of(configured, conf)
    if found is None:
        return None
    if settings.api.authentication != 'keystone':
        raise ConfigurationError(
            f'[credentials] method = {configured.method} needs [api] authentication = keystone: only that method '
            'knows a user for whom a stack can act.'
        )
    method = Method(configured.method)
    if method is not Method.APPLICATION_CREDENTIALS:
        return Issuer(found, method, configured.delegated_roles)
    if seal is None:
        raise ConfigurationError(
            '[credentials] method = application_credentials has secrets to keep: the API needs the same [secrets] keys '
            'as engines and workers.'
        )
    return Issuer(found, method, configured.delegated_roles, seal.close)
