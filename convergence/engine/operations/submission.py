"""What a user sends to say what a stack should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from convergence.core.model import Json
from convergence.template.merging import laid_over


@dataclass(frozen=True, slots=True)
class Submission:
    """What a user sends to say what a stack should be.

    :param template: HOT text, or the document already read.
    :param environment: a mapping with the sections of an environment.
    """

    template: str | Mapping[str, Json]
    environment: Mapping[str, Json] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> dict[str, Json]:
        """As it is kept in a template row."""
        source = self.template if isinstance(self.template, str) else dict(self.template)
        return {'template': source, 'environment': dict(self.environment), 'files': dict(self.files)}

    @classmethod
    def from_content(cls, content: Mapping[str, Json]) -> Submission:
        """What a template row keeps."""
        source, environment, files = content['template'], content['environment'], content['files']
        assert isinstance(source, (str, dict))
        assert isinstance(environment, dict)
        assert isinstance(files, dict)
        return cls(source, environment, {name: str(text) for name, text in files.items()})


def merged(present: Submission, change: Submission | None, changed: Mapping[str, Any]) -> Submission:
    """A partial update: what the user did not send stays as it is.

    :param present: what the stack is now.
    :param change: what the user sent; None where no template was sent.
    :param changed: the sections of the environment that were sent.
    """
    environment = laid_over(present.environment, changed)
    if change is None:
        return Submission(present.template, environment, present.files)
    return Submission(change.template, environment, {**present.files, **change.files})
