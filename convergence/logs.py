"""Logging: every line says which request, stack, traversal, node and worker it belongs to, and shows no secret.

Code logs through the standard library (`logging.getLogger(__name__)`). Whoever begins a piece of work says once
what it is about, with `bind`; the formatter adds it to each line that is logged meanwhile in the same thread or
green thread. Masking happens on the finished text, so tracebacks and the lines of libraries are covered as well.
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
"""What a line can be about, in the order in which it is shown."""
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
    """Show none of these values in lines logged inside the block, tracebacks included, nor in what `masked` gets.

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
    """`text` without the values that are concealed here and now, and without the signatures of signal addresses."""
    known = _masked.get()
    return without_signatures(secrecy.masked(text, known) if known else text)


def masked_within(value: Any) -> AnyJson:
    """A value, as JSON, without what is concealed here and now in any of its texts."""
    return secrecy.texts_without(value, _masked.get() or ())


@contextmanager
def bind(**fields: object) -> Iterator[None]:
    """Say what the lines logged inside the block are about.

    :param fields: any of `FIELDS`; None takes a field away. Blocks nest: the inner one adds to the outer one.
    :raises TypeError: a field that no line shows.
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
    """What lines logged here and now are about. Pass it to `bind` in a thread that continues the work."""
    fields = _bound.get()
    current = request_context.get_current()
    if 'request_id' in fields or current is None or not current.request_id:
        return fields
    return MappingProxyType({'request_id': current.request_id, **fields})


def mask(text: str) -> str:
    """`text` without passwords: neither `password = …` in any notation, nor those inside URLs."""
    if '://' in text:
        text = _URL_PASSWORD.sub(r'\g<before>***', text)
    return strutils.mask_password(text)


def register(conf: cfg.ConfigOpts) -> None:
    """Make the options of oslo.log known to `conf`, with the formats and levels of this project as defaults."""
    log.register_options(conf)
    conf.set_default('use_stderr', True)
    conf.set_default('logging_default_format_string', LINE_FORMAT)
    conf.set_default('logging_context_format_string', LINE_FORMAT)
    conf.set_default('logging_exception_prefix', TRACEBACK_FORMAT)
    conf.set_default('default_log_levels', [*log.get_default_log_levels(), *_QUIET_LIBRARIES])


def set_up(conf: cfg.ConfigOpts, process: str) -> None:
    """Start logging as `conf` says: to stderr, files, journal or syslog, in lines or JSON.

    An exception that ends the process is logged too. What libraries repeat is shown once a minute.

    :param conf: filled by `convergence.config.load`.
    :param process: name of the program.
    :raises ConfigurationError: the log cannot be written.
    """
    try:
        log.setup(conf, process)
    except OSError as error:
        raise ConfigurationError(f'The log cannot be written: {error}. Check log_file and log_dir.') from error
    repetitions = Repetitions()
    for handler in logging.getLogger().handlers:
        handler.addFilter(repetitions)
        if type(handler).handleError is logging.Handler.handleError:  # which writes a traceback for each line
            setattr(handler, 'handleError', _Unwritten())  # noqa: B010 - handlers of any class
        handler.setFormatter(SafeFormatter(handler.formatter or logging.Formatter(LINE_FORMAT)))


class _Unwritten:
    """Says that a log takes no lines, as on a full disk: once in `INTERVAL_S`, in one line on standard error."""

    def __init__(self) -> None:
        self._said_at = -INTERVAL_S

    def __call__(self, record: logging.LogRecord) -> None:
        """A line was not written; called where that is being handled."""
        now = time.monotonic()
        if now - self._said_at < INTERVAL_S:
            return
        self._said_at = now
        error = sys.exc_info()[1]
        with suppress(Exception):  # standard error may be what takes no lines
            why = escaped(f'{type(error).__name__}: {error}')
            print(f'The log cannot be written ({why}); lines are lost.', file=sys.stderr, flush=True)


class SafeFormatter(logging.Formatter):
    """Adds what the line is about, has another formatter write the line, masks secrets, and escapes control characters.

    :param inner: decides what a line looks like.
    """

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self.inner = inner

    @override
    def format(self, record: logging.LogRecord) -> str:
        """The finished line."""
        fields = bound()
        for name in FIELDS:
            setattr(record, name, fields.get(name, ''))
        shown = escaped(' '.join(f'{name}={fields[name]}' for name in FIELDS if name in fields))
        record.about = f'[{shown}] ' if shown else ''
        record.extra = {**getattr(record, 'extra', {}), **fields}  # where oslo.log's JSON looks
        # What is said stays one line, whoever chose its words. A secret is found only before its characters change.
        message = escaped(masked(mask(record.getMessage())))
        unsaid = record.msg, record.args, record.exc_text
        record.msg, record.args = message, ()  # not in a copy: that costs as much as the line
        try:
            line = self.inner.format(record)
        finally:
            record.msg, record.args, record.exc_text = unsaid
        # The line breaks that are left are those of a traceback, of which each line is marked as one.
        return escaped(masked(mask(line)), keep='\n')
