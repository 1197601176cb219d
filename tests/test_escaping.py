"""Nothing that a stranger has named does anything to a log, or to a terminal."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oslo_config import cfg
from oslo_log import formatters

from convergence import logs
from convergence.cli.exits import CommandFailed
from convergence.cli.output import Format, ResultPrinter
from convergence.escaping import escaped, has_active

FORGED = 'x\n2026-11-22 00:00:00.000 1 INFO convergence.api ADMIN LOGIN OK\x1b[31m\r\x9b0m\u2028\u2029\x85\u202e'
ACTIVE = st.sampled_from([*map(chr, (*range(0x20), *range(0x7F, 0xA0))), *'\u2028\u2029\u202a\u202e\u2066\u2069\u200f'])
STRANGE = st.lists(st.one_of(ACTIVE, st.text(max_size=3))).map(''.join)


def active(text: str, keep: str = '') -> list[str]:
    """The characters that should not be there, by what Unicode says of them."""
    import unicodedata

    bidi = {'LRE', 'RLE', 'LRO', 'RLO', 'PDF', 'LRI', 'RLI', 'FSI', 'PDI'}
    return [
        each
        for each in text
        if each not in keep
        and (
            unicodedata.category(each) in ('Cc', 'Zl', 'Zp', 'Cs')
            or unicodedata.bidirectional(each) in bidi
            or each in '\u200e\u200f\u061c'
        )
    ]


@given(STRANGE)
@example(FORGED)
@example('\ud800')
def test_what_is_escaped_is_one_line_and_says_the_same(text):
    shown = escaped(text)
    assert active(shown) == []
    assert escaped(shown) == shown
    assert has_active(text) is (shown != text)
    if '\\' not in text and '"' not in text:
        assert json.loads(f'"{shown}"') == text


# --- the log ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def formatters_of_the_service():
    """The formatters as oslo.log makes them, in the way that the service wraps them."""
    conf = cfg.ConfigOpts()
    logs.register(conf)
    conf([], project='convergence', default_config_files=[])
    inner = {
        'lines': formatters.ContextFormatter(config=conf, project='convergence', version='1'),
        'json': formatters.JSONFormatter(),
        'plain': logging.Formatter(logs.LINE_FORMAT.replace('%(about)s', '')),
    }
    return {name: logs.SafeFormatter(each) for name, each in inner.items()}


def record(text: str, *, as_argument: bool, with_error: bool) -> logging.LogRecord:
    error = None
    if with_error:
        try:
            raise ValueError(text)
        except ValueError:
            error = sys.exc_info()
    message, arguments = ('said %s', (text,)) if as_argument else (text, ())
    return logging.LogRecord('convergence.api', logging.INFO, __file__, 1, message, arguments, error)


@given(text=STRANGE, as_argument=st.booleans())
@example(text=FORGED, as_argument=True)
@settings(deadline=None)
def test_a_message_is_one_line_in_every_format(formatters_of_the_service, text, as_argument):
    for name, formatter in formatters_of_the_service.items():
        with logs.bind(stack=text):
            line = formatter.format(record(text, as_argument=as_argument, with_error=False))
        assert active(line) == [], name
        if name == 'json':
            assert json.loads(line)['message'].endswith(escaped(text))


@given(text=STRANGE)
@example(text=FORGED)
@settings(deadline=None)
def test_no_line_of_a_traceback_passes_for_a_line_of_its_own(formatters_of_the_service, text):
    shown = formatters_of_the_service['lines'].format(record(text, as_argument=True, with_error=True))
    assert active(shown, keep='\n') == []
    assert all(' INFO convergence.api ' in line for line in shown.split('\n')[1:])
    assert active(formatters_of_the_service['json'].format(record(text, as_argument=True, with_error=True))) == []


def test_a_secret_with_a_line_break_is_still_found():
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.SafeFormatter(logging.Formatter('%(message)s')))
    logger = logging.getLogger('convergence.test_escaping')
    logger.addHandler(handler)
    try:
        with logs.masking(['-----BEGIN KEY-----\nabc\n']):
            logger.warning('the key is %s', '-----BEGIN KEY-----\nabc\n')
    finally:
        logger.removeHandler(handler)
    assert 'BEGIN' not in written.getvalue()


# --- the command line ---------------------------------------------------------------------------------------------


def printed(capsys, form: Format, value: object) -> str:
    capsys.readouterr()
    ResultPrinter(form).record({'name': value, 'other': 'x'})
    ResultPrinter(form).listing(['name'], [{'name': value}])
    return capsys.readouterr().out


@pytest.mark.parametrize('form', Format)
@pytest.mark.parametrize('value', [FORGED, {'key': FORGED, FORGED: 1}, [FORGED], [FORGED, 1]], ids=repr)
def test_no_format_lets_a_control_character_through(capsys, form, value):
    @given(STRANGE)
    @example(None)
    @settings(deadline=None, max_examples=30)
    def check(text):
        shown = printed(capsys, form, value if text is None else text)
        assert active(shown, keep='\n\t') == []

    check()


@given(STRANGE)
@example(FORGED)
@settings(deadline=None)
def test_json_and_yaml_still_say_what_they_are_about(text):
    readable = ''.join(each for each in text if not '\ud800' <= each <= '\udfff')
    for form, load in ((Format.JSON, json.loads), (Format.YAML, yaml.safe_load)):
        written = io.StringIO()
        before, sys.stdout = sys.stdout, written
        try:
            ResultPrinter(form).record({'name': readable, readable: 1})
        finally:
            sys.stdout = before
        assert load(written.getvalue()) == {'name': readable, readable: 1}


def test_a_value_of_several_lines_keeps_them_where_it_stands_alone(capsys):
    ResultPrinter(Format.VALUE).record({'key': 'one\ntwo\x1b'})
    assert capsys.readouterr().out == 'one\ntwo\\u001b\n'
    ResultPrinter(Format.VALUE).record({'key': 'one\ntwo', 'other': 'x'})
    assert capsys.readouterr().out == 'one\\ntwo\nx\n'


def test_what_a_server_says_of_a_failure_does_nothing_to_the_terminal():
    import click

    @click.command()
    def fails() -> None:
        raise CommandFailed(f'no such stack: {FORGED}')

    assert active(CliRunner().invoke(fails).output, keep='\n') == []
