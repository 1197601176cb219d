"""What a cloud in memory does with parts of objects: interfaces and sizes of servers, attachments, rules, memberships."""

from __future__ import annotations

import uuid


def new_id():
    """An id as services make them."""
    return str(uuid.uuid4())


def refusal(service, status, text):
    """The body of a refusal, as a service has it."""
    if service in ('compute', 'block-storage'):
        return {'refused': {'code': status, 'message': text}}
    if service == 'identity':
        return {'error': {'code': status, 'message': text}}
    return {'NeutronError': {'type': 'OverQuota' if 'uota' in text else 'Refused', 'message': text, 'detail': ''}}


class Parts:
    """Each answers with a status, headers and a body. What is so already is refused, as real services do.

    :ivar things: all objects by sort and id.
    :ivar members: users by group.
    :ivar is_new: whether a request wants the newest form of answers.
    """

    PATHS = (
        ('volumes_at', r'/servers/(?P<server>[^/]+)/os-volume_attachments(?:/(?P<volume>[^/]+))?'),
        ('interfaces', r'/servers/(?P<server>[^/]+)/os-interface(?:/(?P<port>[^/]+))?'),
        ('server_action', r'/servers/(?P<one>[^/]+)/action'),
        ('metadata', r'/servers/(?P<one>[^/]+)/metadata(?:/(?P<key>[^/]+))?'),
        ('volume_metadata', r'/volumes/(?P<one>[^/]+)/metadata'),
        ('volume_action', r'/volumes/(?P<one>[^/]+)/action'),
        ('tags', r'/servers/[^/]+/tags'),
        ('network_tags', r'/v2.0/(?P<sort>[\w-]+)/(?P<one>[^/]+)/tags'),
        ('router_interface', r'/v2.0/routers/(?P<one>[^/]+)/(?P<what>\w+)_router_interface'),
        ('extra_routes', r'/v2.0/routers/(?P<one>[^/]+)/(?P<what>\w+)_extraroutes'),
        ('images', r'/v2/images(?:/(?P<one>[^/]+))?'),
        ('image_part', r'/v2/images/(?P<one>[^/]+)/(?P<part>\w+)(?:/(?P<key>[^/]+))?'),
        ('subports', r'/v2.0/trunks/(?P<one>[^/]+)/(?P<what>\w+)_subports'),
        ('rules', r'/v2.0/security-group-rules(?:/(?P<one>[^/]+))?'),
        ('membership', r'/groups/(?P<group>[^/]+)/users/(?P<user>[^/]+)'),
    )

    def ports_of(self, server):
        """The ports that a server has."""
        return [port for port in self.things['ports'].values() if port.get('device_id') == server]

    def attach(self, server, network):
        """Make a port for a server, which goes with it."""
        made = self._make('ports', 'port', {'port': {'network_id': network}})[2]['port']
        made.update(device_id=server, owned=True)
        return made

    def detach(self, port):
        """Take a port from its server."""
        port['device_id'] = ''
        if port.get('owned'):
            del self.things['ports'][port['id']]

    def volumes_at(self, method, query, body, server, volume):
        volume = volume or body['volumeAttachment']['volumeId']
        thing = self.things['volumes'][volume]
        here = any(each['server_id'] == server for each in thing['attachments'])
        if method == 'POST':
            if thing['attachments']:
                return 400, {}, refusal('compute', 400, f'volume {volume} is already attached')
            thing.update(attachments=[{'server_id': server, 'id': volume, 'device': '/dev/vdb'}], status='in-use')
        elif not here:
            return 404, {}, refusal('compute', 404, 'not attached')
        elif method == 'DELETE':
            thing.update(attachments=[], status='available')
            return 202, {}, None
        shown = {'volumeId': volume, 'serverId': server}
        if method == 'POST' or not self.is_new:
            shown['id'] = volume
        return 200, {}, {'volumeAttachment': shown}

    def interfaces(self, method, query, body, server, port):
        shown = {
            each['id']: {'port_id': each['id'], 'net_id': each['network_id'], 'fixed_ips': each['fixed_ips']}
            for each in self.ports_of(server)
        }
        if method == 'POST':
            asked = body['interfaceAttachment']
            if not asked.get('port_id'):
                made = self.attach(server, asked['net_id'])
                return 200, {}, {'interfaceAttachment': {'port_id': made['id'], 'net_id': made['network_id']}}
            one = self.things['ports'].get(asked['port_id'])
            if one is None or one['device_id']:
                return 400, {}, refusal('compute', 400, 'Port is in use')
            one['device_id'] = server
            return 200, {}, {'interfaceAttachment': {'port_id': one['id'], 'net_id': one['network_id']}}
        if port is None:
            return 200, {}, {'interfaceAttachments': list(shown.values())}
        if port not in shown:
            return 404, {}, refusal('compute', 404, 'not attached')
        if method == 'DELETE':
            self.detach(self.things['ports'][port])
            return 202, {}, None
        return 200, {}, {'interfaceAttachment': shown[port]}

    def server_action(self, method, query, body, one):
        server = self.things['servers'][one]
        ((what, wanted),) = body.items()
        if what == 'confirmResize' and server.get('confirming at', self.clock_s) > self.clock_s:
            return 400, {}, refusal('compute', 400, 'Instance has not been resized.')
        needed = {'resize': 'ACTIVE', 'confirmResize': 'VERIFY_RESIZE', 'suspend': 'ACTIVE', 'resume': 'SUSPENDED'}[
            what
        ]
        if server['status'] != needed:
            return 409, {}, refusal('compute', 409, f'Cannot {what} while it is {server["status"]}')
        if what == 'resize' and server['flavor']['id'] == wanted['flavorRef']:
            return 400, {}, refusal('compute', 400, 'When resizing, instances must change flavor!')
        if what == 'resize':
            server['flavor'] = {'id': wanted['flavorRef']}
        if what == 'confirmResize' and self.takes_s.get('confirmations'):
            server['confirming at'] = self.clock_s + self.takes_s['confirmations']
            return 202, {}, None
        after = {'resize': 'VERIFY_RESIZE', 'suspend': 'SUSPENDED'}
        server['status'] = after.get(what, 'ACTIVE')
        return 202, {}, None

    def metadata(self, method, query, body, one, key):
        metadata, status = (self.things['servers'][one][name] for name in ('metadata', 'status'))
        if status not in ('ACTIVE', 'SUSPENDED'):
            return 409, {}, refusal('compute', 409, f"Cannot 'update metadata' while it is in vm_state {status}")
        if method == 'DELETE':
            gone = metadata.pop(key, None) is None
            return (404, {}, refusal('compute', 404, 'no such key')) if gone else (204, {}, None)
        if method == 'PUT' and key is None:
            metadata.clear()
        metadata.update(body['metadata'])
        return 200, {}, {'metadata': metadata}

    def volume_metadata(self, method, query, body, one):
        self.things['volumes'][one]['metadata'] = body['metadata']
        return 200, {}, body

    def volume_action(self, method, query, body, one):
        size = body['os-extend']['new_size']
        if size <= self.things['volumes'][one]['size']:
            return 400, {}, refusal('block-storage', 400, 'New size for extend must be greater than current size')
        self.things['volumes'][one]['size'] = size
        return 202, {}, None

    def tags(self, method, query, body):
        return 200, {}, {'tags': []}

    def network_tags(self, method, query, body, sort, one):
        self.things[sort][one]['tags'] = body['tags']
        return 200, {}, {'tags': body['tags']}

    def router_interface(self, method, query, body, one, what):
        ports = self.things['ports']
        mine = [port for port in ports.values() if port.get('device_id') == one]
        if what == 'add':
            if mine:
                return 400, {}, refusal('network', 400, 'Router already has a port on subnet')
            port = {'id': new_id(), 'device_id': one, 'fixed_ips': [{'subnet_id': body['subnet_id']}]}
            ports[port['id']] = port
            return 200, {}, {'id': one, 'subnet_id': body['subnet_id'], 'port_id': port['id']}
        for port in mine:
            del ports[port['id']]
        return (200, {}, {'id': one}) if mine else (404, {}, refusal('network', 404, 'no interface'))

    def extra_routes(self, method, query, body, one, what):
        router = self.things['routers'][one]
        given = body['router']['routes']
        routes = [each for each in router.get('routes') or () if each not in given]
        router['routes'] = [*routes, *given] if what == 'add' else routes
        return 200, {}, {'router': router}

    def images(self, method, query, body, one):
        images = self.things['images']
        if method == 'POST':
            made = {'id': new_id(), 'status': 'queued', 'visibility': 'private', 'tags': [], **body}
            if made['id'] in images:
                return 409, {}, {'message': 'Image ID exists'}
            images[made['id']] = made
            return 201, {}, made
        if one is None:
            found = [each for each in images.values() if each.get('name') in query.get('name', [each.get('name')])]
            return 200, {}, {'images': found}
        if one not in images:
            return 404, {}, {'message': f'no image {one}'}
        if method == 'DELETE':
            del images[one]
            return 204, {}, None
        for change in body or () if method == 'PATCH' else ():
            name = change['path'].removeprefix('/')
            if change['op'] == 'remove':
                del images[one][name]
            else:
                images[one][name] = change['value']
        return 200, {}, {key: value for key, value in images[one].items() if key != '$members'}

    def image_part(self, method, query, body, one, part, key):
        image = self.things['images'][one]
        members = image.setdefault('$members', [])
        if part == 'import':
            if image['status'] != 'queued':
                return 409, {}, {'message': 'Only images with status queued can be imported'}
            image['status'] = 'active'
            return 202, {}, None
        if part == 'actions':
            image['status'] = 'deactivated' if key == 'deactivate' else 'active'
            return 204, {}, None
        if method == 'POST':
            if body['member'] in members:
                return 409, {}, {'message': 'it is a member'}
            members.append(body['member'])
            return 200, {}, {'member_id': body['member']}
        if method == 'DELETE':
            members.remove(key)
            return 204, {}, None
        return 200, {}, {'members': [{'member_id': each} for each in members]}

    def subports(self, method, query, body, one, what):
        trunk = self.things['trunks'][one]
        asked = {each['port_id'] for each in body['sub_ports']}
        there = {each['port_id'] for each in trunk['sub_ports']}
        if asked & there if what == 'add' else asked - there:
            return 409, {}, refusal('network', 409, f'cannot {what} these')
        kept = [each for each in trunk['sub_ports'] if each['port_id'] not in asked]
        trunk['sub_ports'] = [*kept, *body['sub_ports']] if what == 'add' else kept
        return 200, {}, trunk

    def rules(self, method, query, body, one):
        groups = self.things['security-groups'].values()
        if method == 'DELETE':
            for group in groups:
                rules = group['security_group_rules']
                if any(each['id'] == one for each in rules):
                    group['security_group_rules'] = [each for each in rules if each['id'] != one]
                    return 204, {}, None
            return 404, {}, refusal('network', 404, 'no such rule')
        for rule in body['security_group_rules']:
            group = self.things['security-groups'][rule['security_group_id']]
            if any(rule.items() <= each.items() for each in group['security_group_rules']):
                return 409, {}, refusal('network', 409, 'the rule exists')
        made = [{**rule, 'id': new_id()} for rule in body['security_group_rules']]
        group['security_group_rules'] = [*group['security_group_rules'], *made]
        return 201, {}, {'security_group_rules': made}

    def membership(self, method, query, body, group, user):
        members = self.members.setdefault(group, set())
        if method == 'DELETE' and user not in members:
            return 404, {}, refusal('identity', 404, 'no member')
        (members.discard if method == 'DELETE' else members.add)(user)
        return 204, {}, None
