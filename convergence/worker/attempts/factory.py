"""Make an attempt from a claim: the call for the resource type, with everything that the type may use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from convergence.concurrency import Task
from convergence.core.claim import Claim, Step
from convergence.core.model import PERFORMED, Action
from convergence.core.object_state import Made, is_adopted, made
from convergence.documents import Document
from convergence.resources.invocation import CallAccess, Subject, build_call
from convergence.resources.reading import Strictness
from convergence.resources.registry import Registry
from convergence.resources.secrets import known_secrets
from convergence.values import replace
from convergence.worker.attempts.attempt import Attempt, output_without_stack
from convergence.worker.attempts.port import WorkerPort


class Attempts:
    """Makes attempts.

    :param note: stores the arguments of `convergence.resources.contract.Call.record` for an attempt.
    """

    def __init__(self, registry: Registry, port: WorkerPort, note: Callable[..., None]) -> None:
        self._registry = registry
        self._port = port
        self._note = note

    def of(self, claim: Claim, task: Task, begun: Document | None = None) -> Attempt:
        """Make the attempt for a claim.

        :param begun: see `convergence.worker.attempts.port.NestingPort`.
        :raises CannotImport: the resource type cannot be imported.
        :raises Exception: the stored properties do not fit the type.
        """
        resource = claim.resource
        kind = self._registry.get(resource.type)
        subject = Subject.of(claim.stack, resource, claim.pending)
        pending = claim.pending
        if pending is None and made(resource) is not Made.OBJECT:
            pending = resource.pending  # a second creation must use the properties of the first one
        deleting, performing = claim.action is Action.DELETE, claim.action in PERFORMED
        as_made = deleting or performing or is_adopted(resource) or claim.step in (Step.HAND_OVER, Step.RECLAIM)
        properties = pending.properties if pending is not None and not deleting else resource.properties
        call = build_call(
            kind,
            subject,
            properties,
            previous=resource.properties if claim.action is Action.UPDATE else None,
            strictness=Strictness.LENIENT if as_made else Strictness.STRICT,
            cancelled=task.cancelled.is_set,
        )
        known = (resource.physical_id, resource.data, resource.progress)
        attempt = Attempt(claim, kind, task, call, *known, attempts=claim.attempts, most_bytes=self._port.most_bytes)
        attempt.is_begun = begun is not None
        access = CallAccess(self._port.signals, self._port.software, self._port.credentials)
        attempt.call = replace(
            access.given_to(call, resource, pending, task.on_cancel),
            age_s=lambda: attempt.age_s,
            record=partial(self._note, attempt),
            asked=claim.node.asked,
        )
        if kind.nests:
            stack = self._port.nested(claim, partial(output_without_stack, attempt), begun)
            attempt.call = replace(attempt.call, nested=stack)
        return attempt

    def secrets(self, claim: Claim) -> frozenset[str]:
        """The secrets that must not appear in log lines about a claim."""
        secrets = known_secrets(claim.resource, self._registry, claim.pending, claim.node.definition)
        return frozenset(secrets.union(*(known_secrets(rival, self._registry) for rival in claim.rivals)))
