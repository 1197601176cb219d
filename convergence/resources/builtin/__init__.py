"""The resource types that come with Convergence and need nothing but Convergence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convergence.resources.builtin.access_policy import AccessPolicy
from convergence.resources.builtin.addressed import addressed_types
from convergence.resources.builtin.aws_wait_condition import AwsWaitCondition
from convergence.resources.builtin.delay import Delay
from convergence.resources.builtin.groups.deployment_groups import (
    SoftwareDeploymentGroup,
    SoftwareDeployments,
    StructuredDeploymentGroup,
    StructuredDeployments,
)
from convergence.resources.builtin.groups.resource_chain import ResourceChain
from convergence.resources.builtin.groups.resource_group import ResourceGroup
from convergence.resources.builtin.groups.stack import AwsStack, StackResource
from convergence.resources.builtin.none import NoneType
from convergence.resources.builtin.random_string import RandomString
from convergence.resources.builtin.scaling.groups import AutoScalingGroup
from convergence.resources.builtin.scaling.launch import LaunchConfiguration
from convergence.resources.builtin.scaling.servers import AwsAutoScalingGroup, InstanceGroup
from convergence.resources.builtin.software.component import SoftwareComponent
from convergence.resources.builtin.software.configs import CloudConfigType, SoftwareConfigType, StructuredConfigType
from convergence.resources.builtin.software.deployed_server import DeployedServer
from convergence.resources.builtin.software.multipart import MultipartMime
from convergence.resources.builtin.test_resource import TestResource
from convergence.resources.builtin.value import Value
from convergence.resources.builtin.wait_condition import WaitCondition
from convergence.resources.builtin.waiting import system_clock
from convergence.resources.contract import ResourceType


def builtin_types(clock: Callable[[], float] = system_clock) -> dict[str, ResourceType[Any]]:
    """The built-in types by name.

    :param clock: seconds since the epoch; what waits is measured with. A simulator hands in its own.
    """
    return {
        'AWS::AutoScaling::AutoScalingGroup': AwsAutoScalingGroup(),
        'AWS::AutoScaling::LaunchConfiguration': LaunchConfiguration(),
        'AWS::CloudFormation::Stack': AwsStack(),
        'AWS::CloudFormation::WaitCondition': AwsWaitCondition(),
        'OS::Heat::AccessPolicy': AccessPolicy(),
        'OS::Heat::CloudConfig': CloudConfigType(),
        'OS::Heat::AutoScalingGroup': AutoScalingGroup(),
        'OS::Heat::Delay': Delay(clock),
        'OS::Heat::DeployedServer': DeployedServer(),
        'OS::Heat::InstanceGroup': InstanceGroup(),
        'OS::Heat::MultipartMime': MultipartMime(),
        'OS::Heat::None': NoneType(),
        'OS::Heat::RandomString': RandomString(),
        'OS::Heat::ResourceChain': ResourceChain(),
        'OS::Heat::ResourceGroup': ResourceGroup(),
        'OS::Heat::SoftwareComponent': SoftwareComponent(),
        'OS::Heat::SoftwareConfig': SoftwareConfigType(),
        'OS::Heat::SoftwareDeploymentGroup': SoftwareDeploymentGroup(),
        'OS::Heat::SoftwareDeployments': SoftwareDeployments(),
        'OS::Heat::Stack': StackResource(),
        'OS::Heat::StructuredConfig': StructuredConfigType(),
        'OS::Heat::StructuredDeploymentGroup': StructuredDeploymentGroup(),
        'OS::Heat::StructuredDeployments': StructuredDeployments(),
        'OS::Heat::TestResource': TestResource(clock),
        'OS::Heat::Value': Value(),
        'OS::Heat::WaitCondition': WaitCondition(),
        **addressed_types(),
    }
