"""What was done with stacks, and whether an installation gets on with its work."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from convergence.db.repositories.reads.overview import Operations
from convergence.engine.compile.submission import Submission
from convergence.engine.operations.preconditions import RequestMark, require_traversal
from convergence.engine.reads.history import ProgressReads
from convergence.errors import PreconditionFailed, RequestKeyReused


def progress(operations: Operations, *kinds: str) -> dict:
    """What an installation with these processes tells of itself."""
    overview = SimpleNamespace(operations=lambda: operations)
    roster = SimpleNamespace(services=lambda: [SimpleNamespace(kind=kind, is_up=True) for kind in kinds])
    return ProgressReads(overview, roster).get_progress(None)


def test_an_installation_without_work_needs_no_workers():
    assert progress(Operations(0, 0, 0), 'engine')['status'] == 'ok'


@pytest.mark.parametrize(
    ('operations', 'kinds', 'said'),
    [
        (Operations(2, 0, 0), ('engine',), 'no worker is up'),
        (Operations(2, 1, 0), ('engine', 'worker'), '1 operations make no progress'),
        (Operations(2, 0, 2), ('worker',), 'past their deadline'),
    ],
)
def test_an_installation_that_is_stuck_says_why(operations, kinds, said):
    found = progress(operations, *kinds)
    assert found['status'] == 'stuck'
    assert said in ' '.join(found['reasons'])


def test_work_in_progress_is_no_trouble():
    found = progress(Operations(5, 0, 0), 'engine', 'worker', 'worker')
    assert (found['status'], found['reasons'], found['workers'], found['operations']) == ('ok', [], 2, 5)


SUBMISSION = Submission({'heat_template_version': '2018-08-31'}, {'parameters': {'a': 1}}, {})


def test_the_same_request_has_the_same_mark():
    mark = RequestMark.of('key', 'web', SUBMISSION, {'tags': ['a']})
    assert mark == RequestMark.of('key', 'web', SUBMISSION, {'tags': ['a']})
    mark.check(SimpleNamespace(name='web', request_digest=mark.digest))


@pytest.mark.parametrize(
    ('name', 'submission', 'args'),
    [
        ('db', SUBMISSION, None),
        ('web', Submission(SUBMISSION.template, {'parameters': {'a': 2}}, {}), None),
        ('web', Submission(SUBMISSION.template, SUBMISSION.environment, {'f': 'x'}), None),
        ('web', SUBMISSION, {'timeout_mins': 5}),
    ],
)
def test_another_request_has_another(name, submission, args):
    made = SimpleNamespace(name='web', request_digest=RequestMark.of('key', 'web', SUBMISSION, None).digest)
    with pytest.raises(RequestKeyReused, match='Use a new key'):
        RequestMark.of('key', name, submission, args).check(made)


def test_a_stack_must_have_the_traversal_that_was_seen():
    stack = SimpleNamespace(name='web', traversal_id='t-2')
    require_traversal(stack, None)
    require_traversal(stack, 't-2')
    with pytest.raises(PreconditionFailed, match='Read it again, and repeat the request'):
        require_traversal(stack, 't-1')
