"""Resource types that the field has hidden, deprecated, or never supported, and that do not exist here.

Templates with them exist. An error explains why such a type is missing, and which type to use instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


def _of(prefix: str, names: str, reason: str) -> dict[str, str]:
    """The same reason for several types; ``{name}`` in it stands for the last part of the name."""
    return {f'{prefix}::{name}': reason.format(name=name) for name in names.split()}


WITHDRAWN: Mapping[str, str] = MappingProxyType(
    {
        'AWS::CloudWatch::Alarm': 'it went with the CloudWatch API; use an alarm of OS::Aodh',
        'OS::Heat::CWLiteAlarm': 'it went with the CloudWatch API; use an alarm of OS::Aodh',
        'OS::Heat::HARestarter': (
            'it does nothing any more; mark a resource unhealthy, and the next update of the stack replaces it'
        ),
        'OS::Aodh::Alarm': (
            'its alarms relied on an API of Ceilometer that is gone; use OS::Aodh::GnocchiAggregationByResourcesAlarm'
        ),
        'OS::Aodh::CombinationAlarm': 'use OS::Aodh::CompositeAlarm',
        'OS::Ceilometer::Alarm': 'use OS::Aodh::GnocchiAggregationByResourcesAlarm',
        'OS::Ceilometer::CombinationAlarm': 'use OS::Aodh::CompositeAlarm',
        **_of(
            'OS::Ceilometer',
            'GnocchiAggregationByMetricsAlarm GnocchiAggregationByResourcesAlarm GnocchiResourcesAlarm',
            'use OS::Aodh::{name}',
        ),
        'OS::Designate::Domain': 'use OS::Designate::Zone',
        'OS::Designate::Record': 'use OS::Designate::RecordSet',
        'OS::Glance::Image': 'version 1 of the image API is gone; use OS::Glance::WebImage',
        'OS::Magnum::Bay': 'use OS::Magnum::Cluster',
        'OS::Magnum::BayModel': 'use OS::Magnum::ClusterTemplate',
        **_of('OS::Monasca', 'AlarmDefinition Notification', 'the project Monasca was retired'),
        **_of(
            'OS::Neutron',
            'HealthMonitor LoadBalancer Pool PoolMember',
            'version 1 of the load balancers of Neutron is gone; use OS::Octavia::{name}',
        ),
        **_of(
            'OS::Neutron::LBaaS',
            'HealthMonitor L7Policy L7Rule Listener LoadBalancer Pool PoolMember',
            'the load balancers of Neutron are gone; use OS::Octavia::{name}',
        ),
        'OS::Neutron::ExtraRoute': 'it was never supported; use OS::Neutron::ExtraRouteSet',
        'OS::Neutron::RouterGateway': 'use the property external_gateway_info of OS::Neutron::Router',
        **_of(
            'OS::Neutron',
            'FlowClassifier PortChain PortPair PortPairGroup',
            'service function chains were never supported, and are not offered',
        ),
        **_of('OS::Nova', 'FloatingIP FloatingIPAssociation', 'Nova has none any more; use OS::Neutron::{name}'),
        **_of(
            'OS::Sahara',
            'Cluster ClusterTemplate DataSource ImageRegistry Job JobBinary NodeGroupTemplate',
            'the project Sahara was retired',
        ),
        **_of('OS::Senlin', 'Cluster Node Policy Profile Receiver', 'the project Senlin was retired'),
        'OS::Vitrage::Template': 'the project Vitrage is not active any more',
        'OS::Zun::Container': 'it was never supported, and is not offered',
    }
)
"""By name of the type, why it is not there and what to use, as the end of a sentence."""
