# ruff: noqa: RUF009 - prop() makes a dataclass field, like field()
"""Custom constraints: those that come with Convergence, those of packages, those whose service is absent."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergence.errors import StackValidationFailed
from convergence.resources.checks import BUILTIN
from convergence.resources.constraints import custom
from convergence.resources.custom import CustomConstraints, installed_checks
from convergence.resources.schema import PropertySchema, prop
from convergence.template import Installation
from tests.template.build import compiled, problems

# By the year: the names of tests are made from these, and processes that share the tests must agree about them.
NOW = datetime(datetime.now(UTC).year, 7, 1, tzinfo=UTC)
LATER, EARLIER = (NOW + timedelta(days=400)).isoformat(), (NOW - timedelta(days=400)).isoformat()

TABLE = {
    'cron_expression': (
        ['* * * * *', '*/5 0 1 jan mon', '', None, '0 0 31 2 *'],
        ['* * *', '60 * * * *', 'now', '1-1/0 * * * *', '0-9999999999999 * * * *', '* ' * 10_000, 5, ['* * * * *', 1]],
    ),
    'dns_domain': (
        ['example.com.', 'a.b.example.org.', ''],
        ['example.com', 'com.', 'a..b.', '-a.com.', 'example.123.', f'{"a" * 64}.com.', 'a.' * 200 + 'com.', 7],
    ),
    'dns_name': (
        ['www', 'www.example.com', 'www.example.com.', '', 'x' * 63],
        ['x' * 64, 'a_b', 'a b', '-a', 'a-', 'a..b', 'www.example.1.', 'ä.example.com', 7, 'a' * 100_000],
    ),
    'expiration': ([LATER, '', None], [EARLIER, 'tomorrow', 7, '2020-01-01T00:00:00', '9' * 10_000]),
    'ip_addr': (['192.0.2.1', '2001:db8::1', '::'], ['192.0.2', '192.0.2.256', '1.2.3.4/32', '', 'x', 3, None]),
    'ip_or_cidr': (['192.0.2.1', '192.0.2.0/24', '192.0.2.1/24', '2001:db8::/32'], ['192.0.2.0/33', 'x', None, '']),
    'iso_8601': (
        ['2026-03-01', '2026-03-01T12:00:00', '2026-03-01T12:00:00Z', '2026-03-01T12:00:00+02:00'],
        ['yesterday', '2026-13-01', '', None, 20260301],
    ),
    'json_string': (['{"a": 1}', '[]', '1', 'null'], ['{', '', None, {'a': 1}, 'NaN', '[' * 100_000, '9' * 5_000]),
    'mac_addr': (
        ['fa:16:3e:00:00:01', 'FA-16-3E-00-00-01', 'fa16.3e00.0001', 'fa163e000001', 'fa163e-000001'],
        ['fa:16:3e:00:00', 'fa:16:3e:00:00:0g', 'fa:16-3e:00:00:01', '', None, 1],
    ),
    'net_cidr': (
        ['192.0.2.0/24', '0.0.0.0/0', '2001:db8::/32', '10.0.0.1/32', '192.0.2.1/24', '2001:db8::1/32'],
        ['192.0.2.0', '192.0.2.0/33', '192.0.2.0/255.255.255.0', '2001:db8::/129', '10.0.0/24', 'x/1', '', None, 1],
    ),
    'rel_dns_name': (['www', 'www.example', ''], ['www.example.com.', 'a_b', '.', 7]),
    'test_constr': (['anything', '', None, 7], []),
    'timezone': (['Europe/Vienna', 'UTC', ''], ['Mars/Olympus', '../../etc/passwd', 'x' * 1_000, 7, ['UTC', 'Mars']]),
}


def test_the_table_is_complete():
    assert set(TABLE) == set(BUILTIN)


@pytest.mark.parametrize(
    ('name', 'good'), [(name, value) for name, (values, _) in TABLE.items() for value in values], ids=repr
)
def test_good_values(name, good):
    assert custom(name).problem(good) is None


@pytest.mark.parametrize(
    ('name', 'bad'),
    [(name, value) for name, (_, values) in TABLE.items() for value in values],
    ids=lambda value: repr(value)[:40],
)
def test_bad_values_are_not_repeated(name, bad):
    found = custom(name).problem(bad)
    assert found
    assert 'broken' not in found
    assert not (isinstance(bad, str) and len(bad) > 8 and bad in found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
LIKELY = st.text(alphabet='0123456789abcdefZT:./-+* ,@LW#', max_size=40)


@pytest.mark.parametrize('name', BUILTIN)
@settings(derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(value=JSON | LIKELY)
def test_no_value_breaks_a_constraint(name, value):
    found = BUILTIN[name](value)
    assert found is None or (isinstance(found, str) and found)


def template(name, description=None):
    constraint = {'custom_constraint': name, **({'description': description} if description else {})}
    return {
        'heat_template_version': 'newton',
        'parameters': {'p': {'type': 'string', 'constraints': [constraint]}},
    }


def test_a_parameter_is_told_the_value_and_the_reason():
    checks = installed_checks()
    assert compiled(template('net_cidr'), parameters={'p': '10.0.0.0/8'}, installation=Installation(checks=checks))
    (problem,) = problems(
        template('net_cidr'), parameters={'p': '10.0.0.1/33'}, installation=Installation(checks=checks)
    )
    assert problem.message.startswith(
        "Parameter 'p' is invalid: Error validating value '10.0.0.1/33': Invalid net cidr"
    )
    (problem,) = problems(
        template('net_cidr', 'a network'), parameters={'p': 'x'}, installation=Installation(checks=checks)
    )
    assert problem.message == "Parameter 'p' is invalid: a network"


def test_an_unknown_constraint_is_a_problem_of_the_template_and_a_similar_name_is_suggested():
    (problem,) = problems(
        template('net_cird'), parameters={'p': 'x'}, installation=Installation(checks=installed_checks())
    )
    assert '"net_cird" is not known to this installation' in problem.message
    assert 'Did you mean "net_cidr"?' in str(problem)


@pytest.mark.usefixtures('no_plugins')
def test_a_constraint_whose_service_is_absent_refuses_values_and_names_the_service():
    (problem,) = problems(
        template('nova.keypair'), parameters={'p': 'mine'}, installation=Installation(checks=installed_checks())
    )
    assert 'nova.keypair needs the compute service Nova' in problem.message


def test_what_was_accepted_is_not_questioned_again():
    assert compiled(template('expiration'), parameters={'p': EARLIER})
    assert compiled(template('no.longer.installed'), parameters={'p': 'x'})


def test_a_constraint_of_a_package_is_used_and_survived():
    def odd(value):
        return None if int(value) % 2 else 'it must be odd'

    checks = CustomConstraints({'odd': odd})
    assert compiled(template('odd'), parameters={'p': '3'}, installation=Installation(checks=checks))
    (problem,) = problems(template('odd'), parameters={'p': '4'}, installation=Installation(checks=checks))
    assert problem.message.endswith("'4': it must be odd")
    (problem,) = problems(template('odd'), parameters={'p': 'four'}, installation=Installation(checks=checks))
    assert 'odd is broken: it raised ValueError' in problem.message


def test_nothing_of_the_value_is_logged_when_a_constraint_breaks(caplog):
    def broken(value):
        raise ValueError(value)

    with caplog.at_level(logging.DEBUG):
        assert 'S3cret' not in CustomConstraints({'broken': broken}).check('broken', 'S3cret')
    assert 'S3cret' not in caplog.text


@dataclass(frozen=True)
class Route:
    target: str = prop(constraints=[custom('net_cidr')])
    via: list[str] = prop([], constraints=[custom('ip_addr')])
    odd: str | None = prop(None, constraints=[custom('example.odd')])


def test_properties_have_the_same_constraints():
    schema = PropertySchema.of(Route)
    assert schema.parse({'target': '10.0.0.0/8', 'via': ['10.0.0.1']}).via == ['10.0.0.1']
    with pytest.raises(StackValidationFailed) as caught:
        schema.parse({'target': '10.0.0.1', 'via': ['10.0.0.1', 'x'], 'odd': '1'})
    messages = [problem.message for problem in caught.value.problems]
    assert messages[0].startswith('Property target: Invalid net cidr')
    assert messages[1] == 'Property via: Invalid IP address'
    assert 'example.odd is not known to this installation' in messages[2]
    assert schema.describe()['target']['constraints'] == [{'custom_constraint': 'net_cidr'}]
