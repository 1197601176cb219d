"""Software configurations and deployments: what agents are told."""

from convergence.core.software import SoftwareConfig, SoftwareDeployment, deployed_again, filled, for_agents

CONFIG = SoftwareConfig('c', 'p', 'install', 'script', {'config': '#!', 'inputs': [{'name': 'a', 'default': 1}]})
DEPLOYMENT = SoftwareDeployment('d', 'p', 'server', 'c', {'a': 2, 'b': 3}, {'answer': 42}, created_at=5.0)


def test_inputs_have_their_values_and_values_without_an_input_make_one():
    assert filled([{'name': 'a', 'default': 1}, {'name': 'c'}], {'a': 2, 'b': 3}) == [
        {'name': 'a', 'default': 1, 'value': 2},
        {'name': 'c', 'value': None},
        {'name': 'b', 'type': 'String', 'value': 3},
    ]
    assert filled([], None) == []


def test_agents_are_told_the_configurations_by_name_with_the_values_of_their_inputs():
    derived = SoftwareConfig('e', 'p', 'first', 'script', {'config': '!', 'inputs': []}, deployment_id='d')
    told = for_agents([(DEPLOYMENT, CONFIG), (DEPLOYMENT, derived)])
    assert [(config.name, content['inputs']) for config, content in told] == [
        ('first', []),
        ('install', [{'name': 'a', 'default': 1, 'value': 2}, {'name': 'b', 'type': 'String', 'value': 3}]),
    ]


def test_what_a_server_has_answered_stays_until_it_answers_anew():
    wanted = SoftwareDeployment('d', 'p', 'server', 'e')
    assert deployed_again(None, wanted, 9.0).created_at == 9.0
    again = deployed_again(DEPLOYMENT, wanted, 9.0)
    assert (again.output_values, again.created_at, again.updated_at) == ({'answer': 42}, 5.0, 9.0)
