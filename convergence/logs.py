"""Logging: every line names its request, stack, traversal, node and worker, and contains no secret.

Code logs through the standard library (`logging.getLogger(__name__)`). The start of a piece of work binds its context
with `bind`; the formatter adds the context to each line of the same thread or green thread until the work ends. Masking
happens on the finished text, so tracebacks and the lines of libraries are covered as well.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from oslo_config import cfg
from oslo_context import context as request_context
from oslo_log import log
from oslo_utils import strutils
from typing_extensions import override

from convergence import secrecy
from convergence.documents import AnyJson
from convergence.errors import ConfigurationError
from convergence.escaping import escaped
from convergence.repetition import INTERVAL_S, Repetitions
from convergence.signing import without_signatures

FIELDS = ('request_id', 'stack', 'traversal', 'node', 'worker')
"""Fields of the context of a line, in their order of display."""
_KNOWN = frozenset(FIELDS)

LINE_FORMAT = '%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s %(about)s%(message)s'
TRACEBACK_FORMAT = '%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s %(about)s'

_QUIET_LIBRARIES = (
    'alembic=WARNING',
    'amqp=ERROR',  # its only warnings come from closing a channel
    'kombu=WARNING',
    'oslo.messaging=WARNING',
    'oslo_messaging=WARNING',
    'oslo_service=WARNING',
    'sqlalchemy=WARNING',
    'stevedore=WARNING',
)
_URL_PASSWORD = re.compile(r'(?P<before>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:)[^\s@/]+(?=@)')
_bound: ContextVar[Mapping[str, str]] = ContextVar('convergence_log_fields', default=MappingProxyType({}))

_masked: ContextVar[set[str] | None] = ContextVar('convergence_log_secrets', default=None)


@contextmanager
def masking(secrets: Iterable[str] = ()) -> Iterator[None]:
    """Hide these values in lines logged inside the block, including tracebacks, and in results of `masked`.

    :param secrets: see `convergence.secrecy.texts`. Blocks nest: the inner one adds to the outer one.
    """
    token = _masked.set({*(_masked.get() or ()), *secrets})
    try:
        yield
    finally:
        _masked.reset(token)


def mask_also(secrets: Iterable[str]) -> None:
    """Add values, as they become known, to the innermost block of `masking`; without one nothing happens."""
    known = _masked.get()
    if known is not None:
        known.update(secrets)


def masked(text: str) -> str:
    """Return `text` without the values hidden in this block, and without signatures of signal addresses."""
    known = _masked.get()
    return without_signatures(secrecy.masked(text, known) if known else text)


def masked_within(value: Any) -> AnyJson:
    """Return a JSON value whose texts do not contain the values hidden in this block."""
    return secrecy.texts_without(value, _masked.get() or ())


@contextmanager
def bind(**fields: object) -> Iterator[None]:
    """Set the context of lines logged inside the block.

    :param fields: any of `FIELDS`; None removes a field. Blocks nest: the inner one adds to the outer one.
    :raises TypeError: unknown field.
    """
    if unknown := fields.keys() - _KNOWN:
        raise TypeError(f'Log lines have no field {", ".join(sorted(unknown))}; there are {", ".join(FIELDS)}')
    merged = dict(_bound.get())
    for name, value in fields.items():
        merged.pop(name, None)
        if value is not None:
            merged[name] = str(value)
    token = _bound.set(MappingProxyType(merged))
    try:
        yield
    finally:
        _bound.reset(token)


def bound() -> Mapping[str, str]:
    """Return the present context. Pass it to `bind` in a thread that continues the work."""
    fields = _bound.get()
    current = request_context.get_current()
    if 'request_id' in fields or current is None or not current.request_id:
        return fields
    return MappingProxyType({'request_id': current.request_id, **fields})


def mask(text: str) -> str:
    """Return `text` without passwords: neither `password = …` in any notation, nor those inside URLs."""
    if '://' in text:
        text = _URL_PASSWORD.sub(r'\g<before>***', text)
    return strutils.mask_password(text)


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options of oslo.log in `conf`, with the formats and levels of this project as defaults."""
    log.register_options(conf)
    conf.set_default('use_stderr', True)
    conf.set_default('logging_default_format_string', LINE_FORMAT)
    conf.set_default('logging_context_format_string', LINE_FORMAT)
    conf.set_default('logging_exception_prefix', TRACEBACK_FORMAT)
    conf.set_default('default_log_levels', [*log.get_default_log_levels(), *_QUIET_LIBRARIES])


def set_up(conf: cfg.ConfigOpts, process: str) -> None:
    """Start logging as configured in `conf`: to stderr, files, journal or syslog, as lines or JSON.

    An exception that ends the process is logged too. Repeated lines of libraries appear once a minute.

    :param conf: filled by `convergence.config.load`.
    :param process: name of the program.
    :raises ConfigurationError: the log file cannot be opened.
    """
    try:
        log.setup(conf, process)
    except OSError as error:
        raise ConfigurationError(f'The log cannot be written: {error}. Check log_file and log_dir.') from error
    repetitions = Repetitions()
    for handler in logging.getLogger().handlers:
        handler.addFilter(repetitions)
        if type(handler).handleError is logging.Handler.handleError:  # the default prints a traceback per line
            setattr(handler, 'handleError', _Unwritten())  # noqa: B010 - handlers of any class
        handler.setFormatter(SafeFormatter(handler.formatter or logging.Formatter(LINE_FORMAT)))


class _Unwritten:
    """Reports on standard error, at most once per `INTERVAL_S`, that the log loses lines, as on a full disk."""

    def __init__(self) -> None:
        self._said_at = -INTERVAL_S

    def __call__(self, record: logging.LogRecord) -> None:
        """Report a lost line. Call it while the exception is handled."""
        now = time.monotonic()
        if now - self._said_at < INTERVAL_S:
            return
        self._said_at = now
        error = sys.exc_info()[1]
        with suppress(Exception):  # standard error itself may fail
            why = escaped(f'{type(error).__name__}: {error}')
            print(f'The log cannot be written ({why}); lines are lost.', file=sys.stderr, flush=True)


class SafeFormatter(logging.Formatter):
    """Adds the context, lets another formatter write the line, masks secrets, and escapes control characters.

    :param inner: formats the line.
    """

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self.inner = inner

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line."""
        fields = bound()
        for name in FIELDS:
            setattr(record, name, fields.get(name, ''))
        shown = escaped(' '.join(f'{name}={fields[name]}' for name in FIELDS if name in fields))
        record.about = f'[{shown}] ' if shown else ''
        record.extra = {**getattr(record, 'extra', {}), **fields}  # oslo.log's JSON formatter reads it
        # The message stays one line, for any names of users in it. Mask before escaping changes characters.
        message = escaped(masked(mask(record.getMessage())))
        unsaid = record.msg, record.args, record.exc_text
        record.msg, record.args = message, ()  # not in a copy: that costs as much as the line
        try:
            line = self.inner.format(record)
        finally:
            record.msg, record.args, record.exc_text = unsaid
        # The remaining line breaks belong to a traceback, each line of which has the prefix.
        return escaped(masked(mask(line)), keep='\n')
