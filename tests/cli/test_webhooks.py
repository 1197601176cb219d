"""``convergence webhook``, against a real server and a real receiver in this process."""

import json

STACK = 'heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::TestResource}}\n'


def test_a_webhook_from_its_creation_to_its_end(command_line, here, receiver):
    (here / 'stack.yaml').write_text(STACK)
    code, out, err = command_line('webhook', 'create', receiver.url, '--name', 'ci', '-f', 'json')
    assert code == 0, err
    made = json.loads(out)
    assert made['key'].startswith('whsec_')
    code, out, _ = command_line('webhook', 'test', made['id'], '-f', 'json')
    assert (code, json.loads(out)) == (0, {'delivered': True, 'status': 204, 'error': ''})
    assert command_line('stack', 'create', 'told', '-t', 'stack.yaml', '--wait')[0] == 0
    told = receiver.expect(3)
    assert [each['type'] for each in told[1:]] == ['orchestration.stack.create.start', 'orchestration.stack.create.end']
    everything = ''
    for arguments in (('list',), ('list', '--stack', 'told'), ('show', made['id'])):
        code, out, err = command_line('webhook', *arguments, '-f', 'json')
        assert code == 0, err
        everything += out
    assert 'ci' in everything and made['key'] not in everything
    code, _, err = command_line('webhook', 'delete', made['id'])
    assert (code, err.strip()) == (0, f'Webhook {made["id"]} is deleted.')
    for verb in ('show', 'delete', 'test'):
        code, _, err = command_line('webhook', verb, made['id'])
        assert (code, 'Webhook' in err and 'Traceback' not in err) == (3, True), err


def test_what_is_wrong_is_said_in_a_line_and_by_the_exit_code(command_line, receiver):
    code, _, err = command_line('webhook', 'create', 'http://10.0.0.1/')
    assert (code, 'allowed_networks' in err) == (4, True)
    code, _, err = command_line('webhook', 'create', receiver.url, '--stack', 'nobody')
    assert (code, 'nobody' in err) == (3, True)
    assert command_line('webhook', 'create')[0] == 2
    webhook_id = json.loads(command_line('webhook', 'create', receiver.url, '-f', 'json')[1])['id']
    receiver.status = 500
    code, out, err = command_line('webhook', 'test', webhook_id, '-f', 'json')
    assert (code, json.loads(out)['delivered']) == (1, False)
    assert 'the answer was 500' in err
