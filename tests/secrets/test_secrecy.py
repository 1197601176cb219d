"""In which forms a secret is recognised in a text, and which resources may come across a hidden parameter."""

import json
from urllib.parse import quote

import pytest

from convergence import secrecy, template
from convergence.resources.schema import PropertySchema
from tests.secrets.test_canaries import VaultProperties

SECRET = 'pass "word"\n it\'s /Über'


@pytest.mark.parametrize(
    'form',
    [
        SECRET,
        json.dumps(SECRET),
        repr(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        quote(SECRET),
        quote(SECRET, ''),
    ],
)
def test_a_secret_is_masked_however_a_program_quotes_it(form):
    shown = secrecy.masked(f'before {form} after', secrecy.texts(SECRET))
    assert secrecy.MASK in shown
    assert 'pass' not in shown
    assert shown.startswith('before ')
    assert shown.endswith(' after')


def test_the_leaves_of_lists_and_maps_are_secrets_too_but_not_what_stands_everywhere():
    found = secrecy.texts({'a': ['longer', 12345, 'abc', True, None]})
    assert {'longer', '12345'} <= found
    assert not {'abc', 'True', 'None'} & found
    assert secrecy.without({'n': 12345, 's': 'is 12345', 'yes': True}, found) == {
        'n': secrecy.MASK,
        's': f'is {secrecy.MASK}',
        'yes': True,
    }
    assert secrecy.texts_without({'line': 12345}, found) == {'line': 12345}


def test_the_longest_secret_is_masked_first():
    assert secrecy.masked('secret-and-more', ['secret', 'secret-and-more']) == secrecy.MASK


def test_a_hidden_value_follows_references_and_goes_nowhere_else():
    def thing(**properties):
        return {'type': 'OS::Heat::Value', 'properties': properties}

    compiled = template.compile(
        {
            'heat_template_version': '2018-08-31',
            'parameters': {'word': {'type': 'string', 'hidden': True, 'default': 'very-secret'}},
            'resources': {
                'given': thing(value={'str_replace': {'template': 'x=$w', 'params': {'$w': {'get_param': 'word'}}}}),
                'reads': thing(value={'get_attr': ['given', 'value']}),
                'reads_on': thing(value={'get_attr': ['reads', 'value']}),
                'other': thing(value='x'),
            },
        },
        identity=template.StackIdentity('i', 'n', 'p'),
    )
    met = {name: definition.secrets for name, definition in compiled.goal.definitions.items()}
    assert met == {'given': ('very-secret',), 'reads': ('very-secret',), 'reads_on': ('very-secret',), 'other': ()}


def test_the_values_of_secret_properties_are_known_whatever_else_is_wrong_with_them():
    schema = PropertySchema.of(VaultProperties)
    assert schema.secrets({'password': 'very-secret', 'note': 'public'}) == {'very-secret'}
    assert schema.secrets({'password': ['very-secret'], 'mode': 7}) >= {'very-secret'}
