"""Clouds that ``clouds.yaml`` describes. The only place that knows openstacksdk."""

from __future__ import annotations

from typing import Any

from convergence.cli import keystone
from convergence.cli.exits import Unreachable, UsageMistake


def log_in(name: str, source: str) -> tuple[keystone.Login, str]:
    """Get a token and the endpoint of a cloud, and the file with the certificates to trust (empty: the usual ones).

    :param name: of the cloud in ``clouds.yaml``, which is looked for where all clients of OpenStack do.
    :param source: who says so, for messages.
    :raises UsageMistake: there is no such cloud, something is wrong with it, or openstacksdk is not installed.
    :raises Refused: Keystone does not accept the credentials.
    :raises Unreachable: Keystone does not answer, or its catalog has no orchestration service.
    """
    try:
        from openstack import exceptions
        from openstack.config import OpenStackConfig
    except ImportError:
        raise UsageMistake(
            f'{source} names a cloud of clouds.yaml; that needs openstacksdk: '
            'pip install convergence-orchestration[clouds].'
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
        raise UsageMistake(f'{source} has verify: false. Name the certificate to trust as cacert instead.')
    if not endpoint:
        raise Unreachable(keystone.NOT_LISTED.format(source))

    def token() -> str:
        with keystone.as_usage_mistakes(source):
            return str(session.get_token() or '')

    return keystone.Login(endpoint, project_id, token), verify if isinstance(verify, str) else ''
