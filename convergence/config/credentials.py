"""Credentials with which stacks act for their users after a request is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oslo_config import cfg

TRUSTEE = 'trustee'
"""The section that says as whom trusts are used; its options are those of keystoneauth1."""

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        'method',
        default='none',
        choices=[
            ('none', 'stacks have no credentials; types that need some say so and fail'),
            ('trusts', 'the user trusts the account of [trustee], which acts with it and can do nothing without'),
            (
                'application_credentials',
                'the user has an application credential made; its secret is kept sealed in the database',
            ),
        ],
        help='How stacks act for their users after a request is over: what the API makes in Keystone, with the token '
        'of whoever creates or updates a stack. All processes need the same. It needs [api] authentication = keystone, '
        'and the section [trustee]: auth_type = password, auth_url, username, password and user_domain_name of an '
        'account that no other service uses, or auth_section = keystone_authtoken; cafile, insecure and timeout are '
        'known there too. Of [trustee], application_credentials need the auth_url only.',
    ),
    cfg.ListOpt(
        'delegated_roles',
        default=[],
        sample_default='member',
        help='The roles that a stack gets of its user. Who lacks one of them cannot create or update stacks. Without '
        'it: all that the user has in the project.',
    ),
    cfg.StrOpt(
        'region', sample_default='RegionOne', help='Region of the services that types are to use. Not set: any.'
    ),
    cfg.StrOpt(
        'interface',
        default='public',
        choices=['public', 'internal', 'admin'],
        help='The endpoints of the catalog that types are to use.',
    ),
    cfg.FloatOpt(
        'timeout_s',
        default=60.0,
        min=0.1,
        help='Seconds that Keystone, or a service that a type asks with the credentials of a stack, may take for an '
        'answer.',
    ),
    cfg.FloatOpt(
        'settles_s',
        default=600.0,
        min=1.0,
        help='Seconds after which credentials are removed that were begun and that no stack has got: the process or '
        'the request that had them made is over by then.',
    ),
]


@dataclass(frozen=True, slots=True)
class CredentialSettings:
    """How stacks act for their users. See the options of the same names.

    :param region: empty: any.
    """

    method: str = 'none'
    delegated_roles: Sequence[str] = ()
    region: str = ''
    interface: str = 'public'
    timeout_s: float = 60.0
    settles_s: float = 600.0
