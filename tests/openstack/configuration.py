"""The configuration files of the services. Where an option is not the default of its service, a comment says why."""

from __future__ import annotations

import shutil

from convergence_simulator.real.launcher import Sections, configuration_text, merged

from tests.openstack.layout import PASSWORD, REGION, Layout

COMPUTE_HOST = 'pretending'
UNLIMITED = -1


def write(layout: Layout) -> None:
    """Write all of them, and make the directories that they name."""
    layout.configuration.mkdir(parents=True, exist_ok=True)
    for name in (
        'images',
        'staging',
        'tasks',
        'instances',
        'lock',
        'fernet',
        'credential',
        'nova',
        'neutron',
        'cinder',
    ):
        (layout.state / name).mkdir(parents=True, exist_ok=True)
    layout.logs.mkdir(exist_ok=True)
    files = {
        'keystone.conf': _keystone(layout),
        'glance-api.conf': _glance(layout),
        'placement.conf': _placement(layout),
        'neutron.conf': _neutron(layout),
        'nova.conf': _nova(layout),
        'cinder.conf': _cinder(layout),
    }
    for name, sections in files.items():
        (layout.configuration / name).write_text(configuration_text(sections))
    # Nova's API finds this one nowhere else.
    shutil.copy(layout.programs / 'etc/nova/api-paste.ini', layout.configuration / 'api-paste.ini')


def account(layout: Layout, name: str) -> dict[str, object]:
    """How a service logs in at Keystone."""
    return {
        'auth_type': 'password',
        'auth_url': layout.auth_url,
        'username': name,
        'password': PASSWORD,
        'project_name': 'service',
        'user_domain_id': 'default',
        'project_domain_id': 'default',
        'region_name': REGION,
    }


def _base(layout: Layout, name: str, database: str = '') -> Sections:
    return {
        'DEFAULT': {'use_stderr': True},
        # Seven services share one server with whatever else this machine tests.
        'database': {'connection': layout.database_url(database or name), 'max_pool_size': 3, 'max_overflow': 6},
        'oslo_concurrency': {'lock_path': layout.state / 'lock'},
    }


def _service(layout: Layout, name: str) -> Sections:
    verified = {
        'www_authenticate_uri': layout.auth_url,
        'service_token_roles_required': True,
        'service_token_roles': 'service,admin',
        # Tests take tokens away; what was verified a moment ago may be believed no longer than that.
        'token_cache_time': 5,
    }
    return merged(
        _base(layout, name),
        {
            'DEFAULT': {
                'transport_url': layout.transport_url,
                'state_path': layout.state / name,
                # Otherwise the scheduler waits for up to a minute before it looks for machines for the first time.
                'periodic_fuzzy_delay': 0,
            },
            'keystone_authtoken': account(layout, name) | verified,
        },
    )


def _keystone(layout: Layout) -> Sections:
    return merged(
        _base(layout, 'keystone'),
        {
            'fernet_tokens': {'key_repository': layout.state / 'fernet'},
            'credential': {'key_repository': layout.state / 'credential'},
            'token': {'expiration': 36000},
        },
    )


def _glance(layout: Layout) -> Sections:
    return merged(
        _service(layout, 'glance'),
        {
            'DEFAULT': {'enabled_backends': 'files:file'},
            'glance_store': {'default_backend': 'files'},
            'files': {'filesystem_store_datadir': layout.state / 'images'},
            # Tests serve images on ports of their own; unless this is said, they are fetched from 80 and 443 only.
            'import_filtering_opts': {'allowed_ports': '[]'},
            'os_glance_staging_store': {'filesystem_store_datadir': layout.state / 'staging'},
            'os_glance_tasks_store': {'filesystem_store_datadir': layout.state / 'tasks'},
            'paste_deploy': {
                'flavor': 'keystone',
                'config_file': layout.programs / 'etc/glance/glance-api-paste.ini',
            },
        },
    )


def _placement(layout: Layout) -> Sections:
    connection = {'connection': layout.database_url('placement'), 'max_pool_size': 3, 'max_overflow': 6}
    return {
        'DEFAULT': {'use_stderr': True},
        'placement_database': connection,
        'api': {'auth_strategy': 'keystone'},
        'keystone_authtoken': _service(layout, 'placement')['keystone_authtoken'],
    }


def _neutron(layout: Layout) -> Sections:
    kinds = ('network', 'subnet', 'port', 'router', 'floatingip', 'security_group', 'security_group_rule')
    return merged(
        _service(layout, 'neutron'),
        {
            'DEFAULT': {
                'core_plugin': 'ml2',
                # Trunks are missing: their plugin does not load without Open vSwitch.
                'service_plugins': 'router,qos,tag',
                'api_paste_config': layout.programs / 'etc/neutron/api-paste.ini',
                # There are no agents to tell anything, and the pretended machine waits for no wire.
                'dhcp_agent_notification': False,
                'notify_nova_on_port_status_changes': False,
                'notify_nova_on_port_data_changes': False,
                'api_workers': 1,
                'rpc_workers': 1,
                'rpc_state_report_workers': 0,
            },
            'ml2': {
                'type_drivers': 'local,flat,vlan,vxlan',
                'tenant_network_types': 'vxlan',
                'mechanism_drivers': 'bound',
                'extension_drivers': 'port_security,qos,dns',
            },
            'ml2_type_flat': {'flat_networks': '*'},
            'ml2_type_vxlan': {'vni_ranges': '1:4000'},
            'nova': account(layout, 'nova'),
            'placement': account(layout, 'placement'),
            'quotas': {f'quota_{kind}': UNLIMITED for kind in kinds},
        },
    )


def _nova(layout: Layout) -> Sections:
    filters = ('Compute', 'ComputeCapabilities', 'ImageProperties', 'ServerGroupAntiAffinity', 'ServerGroupAffinity')
    connection = {'max_pool_size': 3, 'max_overflow': 6}
    return merged(
        _service(layout, 'nova'),
        {
            'DEFAULT': {
                'compute_driver': 'fake.FakeDriver',
                'instances_path': layout.state / 'instances',
                'host': COMPUTE_HOST,
                'my_ip': '127.0.0.1',
                'osapi_compute_workers': 1,
                'allow_resize_to_same_host': True,
            },
            'api': {'auth_strategy': 'keystone'},
            'api_database': {'connection': layout.database_url('nova_api'), **connection},
            'conductor': {'workers': 1},
            'scheduler': {'workers': 1, 'discover_hosts_in_cells_interval': 2},
            'filter_scheduler': {'enabled_filters': ','.join(f'{each}Filter' for each in filters)},
            'quota': dict.fromkeys(('instances', 'cores', 'ram', 'key_pairs'), UNLIMITED),
            'glance': account(layout, 'glance'),
            'neutron': account(layout, 'neutron'),
            'placement': account(layout, 'placement'),
            'cinder': account(layout, 'cinder') | {'os_region_name': REGION},
            'service_user': account(layout, 'nova') | {'send_service_user_token': True},
            'vnc': {'enabled': False},
        },
    )


def _cinder(layout: Layout) -> Sections:
    return merged(
        _service(layout, 'cinder'),
        {
            'DEFAULT': {
                'enabled_backends': 'pretending',
                'api_paste_config': layout.programs / 'etc/cinder/api-paste.ini',
                'osapi_volume_workers': 1,
                'host': COMPUTE_HOST,
                'my_ip': '127.0.0.1',
                'quota_volumes': UNLIMITED,
                'quota_gigabytes': UNLIMITED,
                'quota_snapshots': UNLIMITED,
            },
            'pretending': {
                'volume_driver': 'cinder.tests.fake_driver.FakeLoggingVolumeDriver',
                'volume_backend_name': 'pretending',
            },
            'nova': account(layout, 'nova'),
            'service_user': account(layout, 'cinder') | {'send_service_user_token': True},
        },
    )
