"""The built-in types whose resources are signalled at addresses of the API, by name."""

from __future__ import annotations

from typing import Any

from convergence.resources.builtin.aws_wait_condition import AwsWaitConditionHandle, UpdateWaitConditionHandle
from convergence.resources.builtin.scaling.policies import AwsScalingPolicy, ScalingPolicy
from convergence.resources.builtin.signal_urls import AddressOfApi, nowhere
from convergence.resources.builtin.software.deployments import SoftwareDeploymentType, StructuredDeployment
from convergence.resources.builtin.wait_condition import WaitConditionHandle
from convergence.resources.contract import ResourceType


def addressed_types(api: AddressOfApi = nowhere) -> dict[str, ResourceType[Any]]:
    """The types by name, as they know where signals are to be sent.

    :param api: see `AddressOfApi`.
    """
    return {
        'AWS::AutoScaling::ScalingPolicy': AwsScalingPolicy(api),
        'AWS::CloudFormation::WaitConditionHandle': AwsWaitConditionHandle(api),
        'OS::Heat::ScalingPolicy': ScalingPolicy(api),
        'OS::Heat::SoftwareDeployment': SoftwareDeploymentType(api),
        'OS::Heat::StructuredDeployment': StructuredDeployment(api),
        'OS::Heat::UpdateWaitConditionHandle': UpdateWaitConditionHandle(api),
        'OS::Heat::WaitConditionHandle': WaitConditionHandle(api),
    }
