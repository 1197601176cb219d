"""A resource of the tests, as a worker has it."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from convergence.core.model import Action
from convergence.resources.attributes import attributes_to_show
from convergence.resources.contract import Call, InProgress, PluginFailure, ResourceType
from convergence.resources.reading import Strictness
from convergence.resources.schema import PropertySchema
from tests.fake_cloud.cloud import CLOUD, USER

TOKEN = '5c1d2f6e-0b0a-4c39-9d39-6d7a3a3f2a01'


class Thing:
    """A resource as a worker has it: what calls answer goes into the next call."""

    load: ClassVar[Callable[[str], ResourceType[Any]]]
    """Imports a type, of the package that is tried out."""

    def __init__(self, type_name: str, /, **properties: Any) -> None:
        self.kind, self.recorded = type(self).load(type_name), []
        self.call: Call[Any] = Call(
            self.read(properties), 'thing', 'stack', 'stack-id', 'project', 'row', TOKEN,
            credentials=lambda: USER, record=self.record, type_name=type_name,
        )  # fmt: skip

    def of(self, name: str) -> Thing:
        """The same under another name, with a token of its own."""
        self.call = replace(self.call, name=name, token=str(uuid.uuid4()))
        return self

    def read(self, properties: Mapping[str, Any]) -> Any:
        """The properties as the type wants them."""
        return PropertySchema.of(self.kind.Properties).parse(properties, Strictness.STRICT)

    def record(self, physical_id: str | None = None, data: Any = None) -> None:
        """Store what is told in the middle of a call."""
        self.recorded.append(physical_id)
        self.call = replace(self.call, physical_id=physical_id or self.call.physical_id, data=data or self.call.data)

    def take(self, answer: Any) -> Any:
        """Store an answer."""
        self.call = replace(
            self.call,
            physical_id=answer.physical_id or self.call.physical_id,
            data=self.call.data if answer.data is None else answer.data,
        )
        return answer

    def do(self, action: Action) -> Thing:
        """Do something until it is done."""
        if action is Action.CREATE:
            self.kind.validate(self.call)
            if self.kind.implements('prepare'):
                self.call = replace(self.call, data=self.kind.prepare(self.call))
        answer = self.take(getattr(self.kind, action.value.lower())(self.call))
        while isinstance(answer, InProgress):
            CLOUD.clock_s += answer.poll_after_s or 0.0
            answer = self.take(self.kind.poll(self.call, action, answer.progress))
        return self

    def show(self) -> None:
        """Read what a worker reads when something is done: all attributes that are shown, and the reference."""
        for name in attributes_to_show(self.kind):
            with contextlib.suppress(PluginFailure):
                self.kind.attribute(self.call, name)
        self.kind.reference_id(self.call)

    def update(self, **properties: Any) -> Thing:
        """Change it."""
        self.call = replace(self.call, previous=self.call.properties, properties=self.read(properties))
        return self.do(Action.UPDATE)
