"""The graph of a stack, as data and as pictures."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from convergence import drawing

GRAPH = {
    'nodes': [
        {'name': 'net', 'type': 'T', 'status': 'CREATE_COMPLETE', 'reason': ''},
        {'name': 'web "1" <b>', 'type': 'T', 'status': 'CREATE_FAILED', 'reason': 'no & more'},
        {'name': 'late', 'type': 'T', 'status': None, 'reason': ''},
    ],
    'edges': [{'from': 'web "1" <b>', 'to': 'net'}, {'from': 'late', 'to': 'web "1" <b>'}],
}


def test_dot():
    lines = drawing.dot(GRAPH).splitlines()
    assert f'  n0 [label="net\\nT\\nCREATE_COMPLETE", fillcolor="{drawing.GREEN}"];' in lines
    assert f'  n1 [label="web \\"1\\" <b>\\nT\\nCREATE_FAILED", fillcolor="{drawing.RED}"];' in lines
    assert lines[-3:] == ['  n1 -> n0;', '  n2 -> n1;', '}']


def test_mermaid():
    lines = drawing.mermaid(GRAPH).splitlines()
    assert lines[0] == 'flowchart BT'
    assert '  n1["web &quot;1&quot; &lt;b&gt;<br/>T<br/>CREATE_FAILED"]' in lines
    assert lines[-2:] == ['  n1 --> n0', '  n2 --> n1']


def test_svg_is_a_picture_in_which_what_is_needed_stands_above():
    root = ElementTree.fromstring(drawing.svg(GRAPH))
    space = '{http://www.w3.org/2000/svg}'
    boxes = {group.find(f'{space}text').text: group.find(f'{space}rect') for group in root.iter(f'{space}g')}
    assert set(boxes) == {'net', 'web "1" <b>', 'late'}
    heights = [int(boxes[name].get('y')) for name in ('net', 'web "1" <b>', 'late')]
    assert heights == sorted(set(heights))
    assert [boxes[name].get('fill') for name in boxes] == [drawing.GREEN, drawing.RED, drawing.GREY]
    assert len(list(root.iter(f'{space}line'))) == 2


@pytest.mark.parametrize(
    ('status', 'colour'),
    [
        ('CREATE_COMPLETE', drawing.GREEN),
        ('UPDATE_FAILED', drawing.RED),
        ('UPDATE_IN_PROGRESS', drawing.BLUE),
        ('DELETE_COMPLETE', drawing.ORANGE),
        ('INIT_COMPLETE', drawing.GREY),
        (None, drawing.GREY),
    ],
)
def test_a_state_has_a_colour(status, colour):
    assert drawing.colour(status) == colour


def test_a_graph_without_nodes_and_one_in_a_circle_can_be_drawn():
    for graph in (
        {'nodes': [], 'edges': []},
        {
            'nodes': [{'name': name, 'type': 'T', 'status': None} for name in 'ab'],
            'edges': [{'from': 'a', 'to': 'b'}, {'from': 'b', 'to': 'a'}],
        },
    ):
        for _, draw in drawing.FORMATS.values():
            assert draw(graph)


def test_a_stack_is_drawn(api):
    path = api.create('drawn')
    graph = api.ask('GET', f'{path}/graph').json['graph']
    assert [(node['name'], node['status']) for node in graph['nodes']] == [
        ('first', 'CREATE_COMPLETE'),
        ('second', 'CREATE_COMPLETE'),
    ]
    assert graph['edges'] == [{'from': 'second', 'to': 'first'}]
    for name, kind in (('dot', 'text/vnd.graphviz'), ('mermaid', 'text/plain'), ('svg', 'image/svg+xml')):
        drawn = api.ask('GET', f'{path}/graph', query_string=f'format={name}')
        assert drawn.headers['content-type'].startswith(kind)
        assert 'CREATE_COMPLETE' in drawn.text
    refused = api.ask('GET', f'{path}/graph', query_string='format=oil')
    assert (refused.status_code, refused.json['error']['message']) == (
        400,
        'format must be json, dot, mermaid, svg, not oil',
    )


def test_a_stack_is_explained_and_has_a_history(api):
    path = api.create('historic')
    api.ask('PATCH', path, json={'parameters': {'text': 'new'}})
    api.settle(path)
    explained = api.ask('GET', f'{path}/explain').json['explanation']
    assert explained['stack_status'] == 'UPDATE_COMPLETE'
    assert 'is over' in explained['summary']
    newest, oldest = api.ask('GET', f'{path}/traversals').json['traversals']
    assert (newest['action'], newest['is_current'], newest['status']) == ('UPDATE', True, 'COMPLETE')
    assert (oldest['action'], oldest['is_current']) == ('CREATE', False)
    assert api.ask('GET', path).headers['etag'] == f'"{newest["id"]}"'
    assert len(api.ask('GET', f'{path}/traversals', query_string='limit=1').json['traversals']) == 1
