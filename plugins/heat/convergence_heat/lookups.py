"""Cached answers of services that serve several requests: the id of a name, the list of extensions.

To make one server Heat's classes request the same flavor six times. Only look-ups are cached, for the calls of one
stack in one process and for a short time; never the state of an object, on which polls depend.
"""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

import requests

from convergence.concurrency import Lock

KEPT_S = 60.0
"""Seconds during which an answer is used."""

JUST_S = 3.0
"""Seconds during which the fields of an object are used: as long as a worker takes to read all its attributes."""

MOST_KEPT = 2000
"""Answers that a process keeps."""

_CONSTANT = re.compile(
    r'/(extensions(/[^/]+)?|flavors(/[^/]+(/os-extra_specs)?)?|limits|v2/images/[^/]+|v2/schemas/\w+)$'
)
"""Paths of what changes seldom, and never by what a stack makes."""

_VERSIONS = re.compile(r'^https?://[^/]+/(v[\d.]+/?)?$')
"""Addresses at which a service lists its versions."""

_NAMING = frozenset({'name', 'fields', 'limit', 'marker', 'sort_key', 'sort_dir', 'id'})
"""Query parameters of look-ups by name."""

Question = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    response: requests.Response
    at: float


def made_up(url: str, status: int, body: Any) -> requests.Response:
    """An answer that a service would have given.

    :param body: None: the answer has none.
    """
    made = requests.Response()
    made.status_code, made.url = status, url
    made.headers['Content-Type'] = 'application/json'
    made._content = b'' if body is None else json.dumps(body).encode()
    return made


class KeptAnswers:
    """The answers that a process keeps, by question.

    :param now: seconds of a clock that never goes back.
    :ivar objects: what answers are about.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._kept: OrderedDict[Question, _Answer] = OrderedDict()
        self.objects = SeenObjects(now)

    def get(self, question: Question) -> requests.Response | None:
        """An answer that is not too old."""
        with self._lock:
            found = self._kept.get(question)
        return found.response if found is not None and self._now() - found.at < KEPT_S else None

    def put(self, question: Question, response: requests.Response) -> None:
        """Keep an answer."""
        with self._lock:
            self._kept[question] = _Answer(response, self._now())
            self._kept.move_to_end(question)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)


class SeenObjects:
    """The ids of objects that a service has just shown or made, so that no request must check them.

    :param now: seconds of a clock that never goes back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._seen: OrderedDict[Question, float] = OrderedDict()

    def see(self, scope: str, service: str, response: requests.Response) -> None:
        """Note what an answer is about, if it is one object: a map with one key, below which there is an id."""
        try:
            ((kind, inside),) = response.json().items()
            seen = (scope, service, f'{kind}s', str(inside['id']))
        except (ValueError, TypeError, KeyError, AttributeError):
            return
        with self._lock:
            self._seen[seen] = self._now()
            self._seen.move_to_end(seen)
            while len(self._seen) > MOST_KEPT:
                self._seen.popitem(last=False)

    def forget(self, object_id: str) -> None:
        """The object may be gone."""
        with self._lock:
            for seen in [each for each in self._seen if each[-1] == object_id]:
                del self._seen[seen]

    def answer(self, question: Question) -> requests.Response | None:
        """Return the answer that the service would give to a look-up of this id."""
        scope, _, service, url, asked, _ = question
        path, _, query = url.partition('?')
        wanted = dict(parse_qsl(f'{query}&{asked}'))
        plural = path.removesuffix('.json').rpartition('/')[2]
        object_id = wanted.pop('id', '')
        with self._lock:
            at = self._seen.get((scope, service, plural, object_id))
        if at is None or self._now() - at > KEPT_S or wanted != {'fields': 'id'}:
            return None
        return made_up(url, 200, {plural: [{'id': object_id}]})


class Lookups:
    """The answers for one call.

    :param scope: the caller: answers to others are not visible.
    :param all_reads: True to cache every read until the call changes something: for calls that do not poll.
    """

    def __init__(self, kept: KeptAnswers, scope: str, *, all_reads: bool = False) -> None:
        self._kept = kept
        self._scope = scope
        self._all_reads = all_reads
        self._own: dict[Question, requests.Response] = {}

    def question(self, url: str, method: str, options: Mapping[str, Any]) -> Question:
        """Return the key of a request."""
        target = options.get('endpoint_filter') or {}
        params = options.get('params') or {}
        asked = urlencode(params, doseq=True) if isinstance(params, Mapping) else str(params)
        version = str(options.get('microversion') or (options.get('headers') or {}).get('OpenStack-API-Version', ''))
        service = str(target.get('service_type') or options.get('endpoint_override') or '')
        return (self._scope, method.upper(), service, str(url), asked, version)

    def answer(self, question: Question) -> requests.Response | None:
        """Return the cached answer."""
        own = self._own.get(question) if self._all_reads else None
        known = own if own is not None else self._kept.get(question)
        return known if known is not None else self._kept.objects.answer(question)

    def keep(self, question: Question, response: requests.Response) -> None:
        """Cache an answer if it is not empty: a missing object may be made at any moment."""
        if not response.ok:
            return
        self._own[question] = response
        self._kept.objects.see(question[0], question[2], response)
        if self._is_lookup(question[3], question[4]) and not _finds_nothing(response):
            self._kept.put(question, response)

    def for_looks(self) -> Lookups:
        """Return the same cache for calls that only read and do not poll: every read is cached."""
        self._all_reads = True
        return self

    def changed(self, url: str, method: str, options: Mapping[str, Any], response: requests.Response) -> None:
        """The call has changed something: what it has read itself is no longer so."""
        self._own.clear()
        if method.upper() == 'DELETE':
            self._kept.objects.forget(url.partition('?')[0].removesuffix('.json').rpartition('/')[2])
        elif response.ok:
            scope, _, service, *_ = self.question(url, method, options)
            self._kept.objects.see(scope, service, response)

    @staticmethod
    def _is_lookup(url: str, asked: str) -> bool:
        path, _, query = url.partition('?')
        if _VERSIONS.search(url) or _CONSTANT.search(path.removesuffix('.json').rstrip('/')):
            return True
        names = {each.partition('=')[0] for each in f'{query}&{asked}'.split('&') if each}
        return bool(names & {'name', 'id'}) and names <= _NAMING


def _finds_nothing(response: requests.Response) -> bool:
    try:
        told = response.json()
    except ValueError:
        return False
    # A list of objects is alone but for what leads to its next page; an object has many fields.
    lists = [each for key, each in told.items() if isinstance(each, list) and not key.endswith('links')]
    return len(lists) == 1 and lists[0] == [] and not told.get('id')


class RecentReads:
    """Recent reads of an object, so that its ten attributes need one request."""

    def __init__(self, kept: KeptAnswers, now: Callable[[], float] = time.monotonic) -> None:
        self._kept = kept
        self._now = now
        self._lock = Lock()
        self._of: OrderedDict[str, tuple[Lookups, float]] = OrderedDict()

    def of(self, token: str, scope: str) -> Lookups:
        """Return the reads for a resource in the last seconds; empty if they are older."""
        with self._lock:
            found, at = self._of.get(token, (None, 0.0))
            if found is None or self._now() - at > JUST_S:
                found = Lookups(self._kept, scope, all_reads=True)
                self._of[token] = found, self._now()
            while len(self._of) > MOST_KEPT:
                self._of.popitem(last=False)
            return found

    def put(self, token: str, lookups: Lookups) -> None:
        """Store the reads of the ended call since its last change."""
        with self._lock:
            self._of[token] = lookups.for_looks(), self._now()

    def drop(self, token: str) -> None:
        """Something is being done to the object."""
        with self._lock:
            self._of.pop(token, None)
