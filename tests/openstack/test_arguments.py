"""What is asked of ``make openstack``. Needs no control plane."""

import pytest

from tests.openstack import __main__ as program


@pytest.mark.parametrize(
    ('arguments', 'do', 'rest'),
    [
        ('', 'test', []),
        ('--keep tests/openstack/test_lives.py', 'test', ['tests/openstack/test_lives.py']),
        ('-k rollback', 'test', ['-k', 'rollback']),
        ('test --every-request', 'test', ['--every-request']),
        ('start', 'start', []),
    ],
)
def test_what_is_no_word_of_its_own_goes_to_pytest(arguments, do, rest):
    asked, left = program._parser().parse_known_args(program._with_what_to_do(arguments.split()))
    assert (asked.do, left) == (do, rest)


def test_what_starts_nothing_takes_nothing_for_pytest(capsys):
    with pytest.raises(SystemExit):
        program.main(['status', '-k', 'rollback'])
    assert 'status takes no arguments: -k rollback' in capsys.readouterr().err
