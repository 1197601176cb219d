"""Clouds of ``clouds.yaml``. No other module of the command line imports openstacksdk."""

from __future__ import annotations

from typing import Any

from convergence.cli.connection import keystone
from convergence.cli.exits import Unreachable, UsageMistake


def log_in(name: str, source: str) -> tuple[keystone.Login, str]:
    """Return the token and endpoint of a cloud, and the file with its certificates (empty: those of the system).

    :param name: name of the cloud in ``clouds.yaml``, which lies in the usual places of OpenStack clients.
    :param source: the option or variable with the name, for messages.
    :raises UsageMistake: the cloud does not exist or is invalid, or openstacksdk is not installed.
    :raises Refused: Keystone does not accept the credentials.
    :raises Unreachable: Keystone does not answer, or its catalog has no orchestration service.
    """
    try:
        from openstack import exceptions
        from openstack.config import OpenStackConfig
    except ImportError:
        raise UsageMistake(
            f'{source} needs openstacksdk to read clouds.yaml: pip install convergence-orchestration[clouds].'
        ) from None
    try:
        with keystone.as_usage_mistakes(source):
            region: Any = OpenStackConfig().get_one(cloud=name)
            verify = region.get_requests_verify_args()[0]
            session = region.get_session()
            endpoint = region.get_session_endpoint(keystone.SERVICE)
            project_id = session.get_project_id() or ''
    except exceptions.SDKException as error:
        raise UsageMistake(f'{source}: {error}') from None
    if verify is False:
        raise UsageMistake(f'{source} has verify: false, which is not supported. Set cacert to the certificate.')
    if not endpoint:
        raise Unreachable(keystone.NOT_LISTED.format(source))

    def token() -> str:
        with keystone.as_usage_mistakes(source):
            return str(session.get_token() or '')

    return keystone.Login(endpoint, project_id, token), verify if isinstance(verify, str) else ''
