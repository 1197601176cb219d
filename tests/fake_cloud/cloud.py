"""A cloud in memory: Keystone, Neutron, Nova, Cinder and Glance as far as a few resources ask them.

Its answers have the form of real ones. It is mounted under a real session, so that all clients of Heat are real.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import requests
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from requests.adapters import BaseAdapter

from tests.fake_cloud.parts import Parts, new_id, refusal

PORTS = {'network': 9696, 'compute': 8774, 'block-storage': 8776, 'image': 9292, 'identity': 5000}
PATHS = {'network': '', 'compute': '/v2.1', 'block-storage': '/v3/project', 'image': '', 'identity': '/v3'}
KINDS = {
    'networks': 'network',
    'subnets': 'subnet',
    'ports': 'port',
    'routers': 'router',
    'floatingips': 'floatingip',
    'security-groups': 'security_group',
    'projects': 'project',
    'domains': 'domain',
    'volumes': 'volume',
    'servers': 'server',
    'segments': 'segment',
    'trunks': 'trunk',
    'users': 'user',
    'groups': 'group',
}
EXTENSIONS = ('router', 'security-group', 'trunk', 'extraroute-atomic')
IMAGE = '2d3f4d4f-c91d-42a5-803a-8ae740dafa02'
"""The id of the only image."""

FOUND_BY = ('name', 'id', 'description', 'device_id', 'project_id')
_SHOWN = ('tenant_id', 'qos_policy_id', 'l2_adjacency', 'propagate_uplink_status', 'dns_assignment', 'device_owner')
_SHOWN += ('allowed_address_pairs', 'security_groups', 'network_id', 'created_at', 'links', 'dns_name', 'encrypted')
_SHOWN += ('availability_zone', 'snapshot_id', 'source_volid', 'size', 'multiattach', 'accessIPv6', 'parent_id')
_SHOWN += ('domain_id', 'enabled', 'is_domain')
DEFAULTS = {
    'network': {'status': 'ACTIVE', 'port_security_enabled': True, 'admin_state_up': True, 'subnets': [], 'mtu': 1450},
    'subnet': {'allocation_pools': [], 'enable_dhcp': True, 'gateway_ip': '10.0.0.1'},
    'port': {'status': 'ACTIVE', 'fixed_ips': [], 'device_id': '', 'port_security_enabled': True},
    'router': {'status': 'ACTIVE', 'external_gateway_info': None},
    'security_group': {'security_group_rules': []},
    'trunk': {'status': 'ACTIVE', 'sub_ports': []},
    'volume': {'status': 'available', 'attachments': [], 'volume_type': 'plain', 'bootable': 'false', 'metadata': {}},
    'server': {'status': 'ACTIVE', 'addresses': {}, 'metadata': {}, 'accessIPv4': '', 'OS-EXT-STS:task_state': None},
}


class Cloud(Parts, BaseAdapter):
    """The services. Each request is served by `handle`.

    :ivar things: all objects by sort and id.
    :ivar requests: what was asked, as (method, path), tokens and versions left out.
    :ivar sent: how many requests there were, those for tokens and versions too.
    :ivar clock_s: the time, which goes on when a test says so.
    :ivar takes_s: how long it takes to make an object, by sort.
    :ivar refuses: the status, the headers and the text that the next requests that make something get.
    """

    def __init__(self):
        super().__init__()
        self.things = {sort: {} for sort in (*KINDS, 'os-keypairs', 'images')}
        self.things['images'][IMAGE] = {'id': IMAGE, 'name': 'cirros', 'status': 'active', 'min_ram': 0, 'min_disk': 0}
        flavors = enumerate(('m1.tiny', 'm1.small'), start=1)
        self.flavors = {
            str(number): {'id': str(number), 'name': name, 'ram': 64, 'disk': 1, 'vcpus': 1} for number, name in flavors
        }
        self.members = {}
        self.is_new = False
        self.requests = []
        self.refuses = []
        self.sent = 0
        self.clock_s = 0.0
        self.takes_s = {}
        self.tokens = 0

    def session(self):
        """A session of a user."""
        session = requests.Session()
        session.mount('http://', self)
        auth = v3.Password('http://cloud:5000/v3', username='u', password='p', user_domain_id='d', project_id='project')
        return Session(auth=auth, session=session, timeout=60)

    def clear(self):
        """Have nothing but what some resources need."""
        for things in self.things.values():
            for key in [key for key in things if key != IMAGE]:
                del things[key]
        for sort in ('networks', 'routers', 'servers', 'volumes', 'domains', 'floatingips'):
            key = f'kept-{sort}'
            kept = {'id': key, 'name': key, 'status': 'available', 'attachments': [], 'metadata': {}, 'description': ''}
            kept |= {'routes': []} if sort == 'routers' else {}
            kept |= {'port_id': None, 'floating_ip_address': '172.24.0.9'} if sort == 'floatingips' else {}
            self.things[sort][key] = kept
        subnet = {'id': 'kept-subnets', 'name': 'kept-subnets', 'network_id': 'kept-networks'}
        self.things['subnets']['kept-subnets'] = subnet
        port = {
            **dict.fromkeys(_SHOWN),
            **DEFAULTS['port'],
            'mac_address': 'fa',
            'id': 'kept-ports',
            'name': 'kept-ports',
            'description': '',
        }
        addresses = [{'subnet_id': 'kept-subnets', 'ip_address': '10.0.0.7'}]
        self.things['ports']['kept-ports'] = port | {'network_id': 'kept-networks', 'fixed_ips': addresses}
        self.members.clear()
        self.requests.clear()
        self.refuses.clear()
        self.takes_s.clear()

    def wait(self, seconds):
        """Let time pass."""
        self.clock_s += seconds

    def made(self):
        """The names of all objects that users have made."""
        found = [(sort, key) for sort, things in self.things.items() for key in things]
        attached = [
            ('attachments', volume['id']) for volume in self.things['volumes'].values() if volume['attachments']
        ]
        attached += [
            ('associations', each['id'])
            for each in self.things['floatingips'].values()
            if 'kept-' in each['id'] and each['port_id']
        ]
        named = [f'{sort} {key}' for sort, key in (*found, *attached) if key != IMAGE]
        return [name for name in named if 'kept-' not in name or name.startswith(('attachments', 'associations'))]

    def send(self, request, **options):
        """Serve a prepared request; `handle` is what a test may make fail."""
        assert options['timeout'], 'a request that waits for ever'
        try:
            status, headers, body = self.handle(request)
        except OSError as error:  # what the conformance kit breaks a connection with
            raise requests.ConnectionError(str(error)) from error
        response = requests.Response()
        response.status_code, response.request, response.url = status, request, request.url
        response.headers.update({'Content-Type': 'application/json', **headers})
        response.raw = io.BytesIO(b'' if body is None else json.dumps(body).encode())
        return response

    def close(self):
        """Nothing is open."""

    def handle(self, request):
        """The status, headers and body of an answer."""
        self.sent += 1
        parts = urlsplit(request.url)
        service = next(name for name, port in PORTS.items() if port == parts.port)
        path = parts.path.rstrip('/').removeprefix(PATHS[service])
        query = parse_qs(parts.query)
        body = json.loads(request.body) if request.body else None
        if path == '/auth/tokens':
            self.tokens += 1
            return 201, {'X-Subject-Token': f'token-{self.tokens}'}, {'token': _token()}
        if request.headers.get('X-Auth-Token') == 'old':
            return 401, {}, {'error': {'code': 401, 'message': 'expired'}}
        if not path or re.fullmatch(r'/v[\d.]+', path):
            return _versions(service)
        self.requests.append((request.method, path))
        version = request.headers.get('X-OpenStack-Nova-API-Version') or '2.1'
        self.is_new = version == 'latest' or int(version.partition('.')[2]) >= 47
        if request.method == 'POST' and self.refuses:
            status, headers, text = self.refuses.pop(0)
            return status, headers, refusal(service, status, text)
        return self._served(service, request.method, path, query, body)

    def _served(self, service, method, path, query, body):
        for way, pattern in (
            (self._flavors, r'/flavors(?:/(?P<one>[^/]+))?'),
            (self._extensions, r'/v2.0/extensions'),
            (self._limits, r'/limits'),
            (self._schema, r'/v2/schemas/image'),
            *((getattr(self, name), path) for name, path in Parts.PATHS),
            (self._things, r'(?:/v2.0|/v2)?/(?P<sort>[\w-]+)(?:/(?P<one>(?!detail)[^/]+))?(?:/detail)?'),
        ):
            fits = re.fullmatch(pattern, path)
            if fits:
                return way(method, query, body, **fits.groupdict())
        return 404, {}, refusal(service, 404, f'no {path}')

    def _flavors(self, method, query, body, one):
        if one is None:
            return 200, {}, {'flavors': list(self.flavors.values())}
        found = self.flavors.get(one)
        return (200, {}, {'flavor': found}) if found else (404, {}, refusal('compute', 404, 'no flavor'))

    def _extensions(self, method, query, body):
        return 200, {}, {'extensions': [{'alias': alias} for alias in EXTENSIONS]}

    def _limits(self, method, query, body):
        return 200, {}, {'limits': {'rate': [], 'absolute': {}}}

    def _schema(self, method, query, body):
        return 200, {}, {'name': 'image', 'properties': {}}

    def _is_taken(self, given, own):
        """Whether an address that somebody asks for is that of another port."""
        wanted = {each.get('ip_address') for each in given.get('fixed_ips') or ()} - {None}
        others = [port for port in self.things['ports'].values() if port['id'] != own]
        return any(each.get('ip_address') in wanted for port in others for each in port['fixed_ips'])

    def _things(self, method, query, body, sort, one):
        things = self.things[sort]
        if sort == 'os-keypairs':
            return self._key_pairs(method, body, one)
        kind = KINDS.get(sort)
        if one is None and method == 'POST':
            return self._make(sort, kind, body)
        if one is None:
            names = {key: values for key, values in query.items() if key in FOUND_BY}
            fitting = [each for each in things.values() if all(str(each.get(k)) in v for k, v in names.items())]
            page = [] if 'marker' in query else fitting
            return 200, {}, {sort.replace('-', '_'): page}
        if one not in things:
            return 404, {}, refusal('compute' if sort == 'servers' else '', 404, f'no {sort} {one}')
        if method == 'DELETE':
            return self._remove(sort, one)
        if method in ('PUT', 'PATCH'):
            if kind == 'port' and self._is_taken(body[kind], one):
                return 409, {}, refusal('network', 409, 'IP address is already allocated')
            things[one].update(body[kind])
        shown = things[one]
        if shown.get('confirming at', self.clock_s + 1) <= self.clock_s:
            del shown['confirming at']
            shown['status'] = 'ACTIVE'
        if kind == 'server':
            addresses = [
                {
                    'addr': each['ip_address'],
                    'OS-EXT-IPS:type': 'fixed',
                    'OS-EXT-IPS-MAC:mac_addr': port['mac_address'],
                }
                for port in self.ports_of(one)
                for each in port['fixed_ips']
            ]
            if self.is_new:
                shown = shown | {
                    'flavor': {'original_name': self.flavors[shown.get('flavor', {'id': '1'})['id']]['name']}
                }
            shown = shown | {'addresses': {'net': addresses} if addresses else {}}
        shown = self._as_far(sort, shown)
        return 200, {}, {kind: shown} if kind else shown

    def _as_far(self, sort, thing):
        """An object as it is by now."""
        if thing.get('ready at', 0.0) <= self.clock_s:
            return thing
        return thing | {'status': 'creating' if sort == 'volumes' else 'BUILD'}

    def _make(self, sort, kind, body):
        given = body[kind]
        names = [each.get('name') for each in self.things[sort].values()]
        if sort == 'projects' and given['name'] in names:
            return 409, {}, refusal('identity', 409, 'Conflict: a project of that name exists')
        if kind == 'server':
            given = {**given, 'flavor': {'id': given.get('flavorRef', '1')}}
        thing = {
            **dict.fromkeys(_SHOWN),
            'id': new_id(),
            'description': '',
            'name': '',
            **DEFAULTS.get(kind, {}),
            **given,
        }
        if kind == 'port' and self._is_taken(given, ''):
            return 409, {}, refusal('network', 409, 'IP address is already allocated')
        networks = [each for each in given.get('networks') or () if isinstance(each, dict)]
        taken = [self.things['ports'][each['port']] for each in networks if 'port' in each]
        if kind == 'server' and any(port['device_id'] for port in taken):
            return 409, {}, refusal('compute', 409, 'Port is in use')
        for port in taken:
            port['device_id'] = thing['id']
        if kind == 'port':
            thing.setdefault('mac_address', f'fa {thing["id"]}')
        if kind == 'port':
            asked = given.get('fixed_ips') or [{}]
            thing['fixed_ips'] = [{'subnet_id': 'kept-subnets', 'ip_address': '10.0.0.9', **each} for each in asked]
        self.things[sort][thing['id']] = thing
        for network in (each['uuid'] for each in networks if kind == 'server' and 'port' not in each):
            self.attach(thing['id'], network)
        thing['ready at'] = self.clock_s + self.takes_s.get(sort, 0.0)
        return 202 if kind == 'server' else 201, {}, {kind: self._as_far(sort, thing)}

    def _remove(self, sort, one):
        used = [
            port for port in self.things['ports'].values() if one in (port.get('network_id'), port.get('device_id'))
        ]
        if used and sort in ('networks', 'routers'):
            return 409, {}, refusal('network', 409, 'There are ports in use')
        for port in self.ports_of(one):
            self.detach(port)
        del self.things[sort][one]
        return 204, {}, None

    def _key_pairs(self, method, body, one):
        pairs = self.things['os-keypairs']
        if method == 'POST':
            pair = body['keypair']
            if pair['name'] in pairs:
                return 409, {}, refusal('compute', 409, 'Key pair exists')
            pairs[pair['name']] = {'public_key': 'ssh-rsa made', **pair}
            private = {} if pair.get('public_key') else {'private_key': 'secret key'}
            return 200, {}, {'keypair': pairs[pair['name']] | private}
        if one not in pairs:
            return 404, {}, refusal('compute', 404, 'no key pair')
        return (200, {}, {'keypair': pairs[one]}) if method == 'GET' else (202, {}, pairs.pop(one) and None)

    def counted(self):
        """How often each thing was asked."""
        return Counter(self.requests)


class User:
    """Credentials of a user of a cloud."""

    auth_url, project_id, user_id, region, interface = 'http://cloud:5000/v3', 'project', 'user', '', 'public'

    def __init__(self, cloud):
        self._session = cloud.session()

    def session(self):
        """The session."""
        return self._session

    def token(self):
        """A token."""
        return self._session.get_token()

    def renew(self):
        """Have another one next time."""
        self._session.invalidate()


CLOUD = Cloud()
"""The one of the tests: fixtures of the conformance kit are made when tests are collected."""
USER = User(CLOUD)


def _token():
    catalog = [
        {
            'type': service,
            'name': service,
            'endpoints': [
                {'interface': 'public', 'region_id': 'R', 'region': 'R', 'url': f'http://cloud:{port}{PATHS[service]}'}
            ],
        }
        for service, port in PORTS.items()
    ]
    domain = {'id': 'd', 'name': 'D'}
    return {
        'catalog': catalog,
        'expires_at': '2999-01-01T00:00:00.000000Z',
        'issued_at': '2020-01-01T00:00:00.000000Z',
        'methods': ['password'],
        'project': {'id': 'project', 'name': 'p', 'domain': domain},
        'roles': [{'id': 'r', 'name': 'member'}],
        'user': {'id': 'user', 'name': 'u', 'domain': domain},
    }


def _versions(service):
    port, path = PORTS[service], PATHS[service].removesuffix('/project')
    name = {'compute': 'v2.1', 'block-storage': 'v3.0', 'identity': 'v3.14', 'image': 'v2.9', 'network': 'v2.0'}[
        service
    ]
    most = {'compute': '2.90', 'block-storage': '3.70'}.get(service, '')
    link = {'rel': 'self', 'href': f'http://cloud:{port}{path or "/" + name.partition(".")[0]}'}
    one = {'id': name, 'status': 'CURRENT', 'version': most, 'min_version': '2.1' if most else '', 'links': [link]}
    if service == 'identity':
        return 200, {}, {'version': one | {'status': 'stable'}}
    return 200, {}, {'version': one, 'versions': [one]} if service == 'compute' else {'versions': [one]}
