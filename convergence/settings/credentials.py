"""Settings of the credentials with which stacks act for their users after a request is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convergence.settings.declaring import option

TRUSTEE = 'trustee'
"""The section with the account that uses trusts; keystoneauth1 defines its options."""


@dataclass(frozen=True, slots=True)
class CredentialSettings:
    """The section ``credentials``.

    :param region: empty: any.
    """

    method: str = option(
        'none',
        'Kind of credentials that the API makes in Keystone, with the token of the user who creates or updates a '
        'stack, so that the stack can act for the user later. Set the same value for all processes. Trusts and '
        'application credentials need [api] authentication = keystone and the section [trustee]: auth_type = '
        'password, auth_url, username, password and user_domain_name of an account that no other service uses, or '
        'auth_section = keystone_authtoken; cafile, insecure and timeout are valid there too. '
        'application_credentials use only the auth_url of [trustee].',
        choices=[
            ('none', 'stacks have no credentials; resource types that need some fail with a text that says so'),
            ('trusts', 'the user trusts the account of [trustee], which can act only through the trust'),
            (
                'application_credentials',
                'the API makes an application credential of the user and stores its secret encrypted in the database',
            ),
        ],
    )
    delegated_roles: Sequence[str] = option(
        (),
        'Roles that a user delegates to a stack. A user without one of them cannot create or update stacks. Default: '
        'all roles of the user in the project.',
        sample='member',
    )
    region: str = option('', 'Region of the services that resource types use. Default: any.', sample='RegionOne')
    interface: str = option(
        'public',
        'Interface of the service catalog whose endpoints resource types use.',
        choices=['public', 'internal', 'admin'],
    )
    timeout_s: float = option(
        60.0,
        'Seconds in which Keystone, or a service that a resource type calls with the credentials of a stack, must '
        'answer.',
        min=0.1,
    )
    orphan_grace_s: float = option(
        600.0,
        'Seconds after which the sweeper removes credentials that belong to no stack. Longer than any request that '
        'makes credentials.',
        min=1.0,
        deprecated_name='settles_s',
    )
