"""Plays calls to a resource type by hand, as far as a test wants."""

from __future__ import annotations

from dataclasses import replace

from convergence.resources.contract import Done, InProgress
from convergence.resources.invocation import Subject, build_call

SUBJECT = Subject('thing', 'stack', 'stack-id', 'project-id', 'resource-id', 'token-1')


class Row:
    """One resource of one type: keeps what the engine's row would keep, and offers calls."""

    def __init__(self, kind, properties, name='thing', token='token-1', stack_id='stack-id'):
        self.kind = kind
        self.properties = properties
        self.subject = replace(SUBJECT, name=name, token=token, stack_id=stack_id)

    def call(self, previous=None, **options):
        call = build_call(self.kind, self.subject, self.properties, previous=previous, **options)
        return replace(call, record=lambda physical_id=None, data=None: self.store(Done(physical_id, data)))

    def store(self, answer):
        """Keep what an answer says; gives the answer back."""
        if answer.physical_id is not None:
            self.subject = replace(self.subject, physical_id=answer.physical_id)
        if answer.data is not None:
            self.subject = replace(self.subject, data=answer.data)
        return answer

    def poll(self, answer, action, wait):
        """Poll until it is done; gives the number of polls."""
        polls = 0
        while isinstance(answer, InProgress):
            wait(answer.poll_after_s or 0)
            answer = self.store(self.kind.poll(self.call(), action, answer.progress))
            polls += 1
        return polls

    def attribute(self, name):
        return self.kind.attribute(self.call(), name)
