"""What a user sends to say what a stack should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from convergence.core.model import Goal, Json
from convergence.resources.implied import Implied, implied_in
from convergence.template.merging import laid_over
from convergence.values import replace

_ENVIRONMENT_FILES = 'environment_files'
_FACADE = 'facade'
_IMPLIED = 'implied'
_ASKED = 'asked'


@dataclass(frozen=True, slots=True)
class Submission:
    """What a user sends to say what a stack should be.

    :param template: HOT text, or the document already read.
    :param environment: a mapping with the sections of an environment.
    :param environment_files: texts, by name, of files from which parts of the environment came. They are kept to be
        shown, and mean nothing any more.
    :param implied: what resource types have said that the template does not, when it was accepted: for names of
        resources those that they come after. None: they have not been asked.
    :param asked: attributes that are asked from outside of resources of a nested stack, by their names.
    :param facade: what the resource says of itself that the template stands for; see `template.analyse`.
    """

    template: str | Mapping[str, Json]
    environment: Mapping[str, Json] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    environment_files: Mapping[str, str] = field(default_factory=dict)
    facade: Mapping[str, Json] = field(default_factory=dict)
    implied: Implied | None = None
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def accepted(self, goal: Goal) -> Submission:
        """The same, with what resource types have said of the goal that was made of it."""
        return replace(self, implied=implied_in(goal.definitions))

    def itself(self) -> Submission:
        """The same, without what resource types had to say of it."""
        return replace(self, implied=None)

    def is_like(self, other: Submission) -> bool:
        """Whether both ask for the same, whatever resource types had to say of them."""
        return self.itself().content() == other.itself().content()

    def circumstances(self) -> dict[str, Json]:
        """All that a template is compiled from besides its text."""
        return replace(self.itself(), template='').content()

    def content(self) -> dict[str, Json]:
        """As it is kept in a template row."""
        source = self.template if isinstance(self.template, str) else dict(self.template)
        content: dict[str, Json] = {
            'template': source,
            'environment': dict(self.environment),
            'files': dict(self.files),
        }
        if self.environment_files:
            content[_ENVIRONMENT_FILES] = dict(self.environment_files)
        if self.facade:
            content[_FACADE] = dict(self.facade)
        if self.implied:
            content[_IMPLIED] = {name: list(names) for name, names in self.implied.items()}
        if self.asked:
            content[_ASKED] = {name: list(attributes) for name, attributes in self.asked.items()}
        return content

    @classmethod
    def from_content(cls, content: Mapping[str, Json]) -> Submission:
        """What a template row keeps."""
        source, environment, files = content['template'], content['environment'], content['files']
        shown = content.get(_ENVIRONMENT_FILES) or {}
        assert isinstance(shown, dict)
        assert isinstance(source, (str, dict))
        assert isinstance(environment, dict)
        assert isinstance(files, dict)
        texts, said = ({name: str(text) for name, text in each.items()} for each in (files, shown))
        facade = content.get(_FACADE) or {}
        assert isinstance(facade, dict)
        implied, asked = (_lists(content.get(key)) for key in (_IMPLIED, _ASKED))
        return cls(source, environment, texts, said, facade, implied, asked)


def _lists(kept: Json) -> dict[str, tuple[str, ...]]:
    kept = kept or {}
    assert isinstance(kept, dict)
    return {name: tuple(map(str, names)) for name, names in kept.items() if isinstance(names, list)}


def merged(present: Submission, change: Submission | None, changed: Mapping[str, Any]) -> Submission:
    """A partial update: what the user did not send stays as it is.

    :param present: what the stack is now.
    :param change: what the user sent; None where no template was sent.
    :param changed: the sections of the environment that were sent.
    """
    environment = laid_over(present.environment, changed)
    if change is None:
        return replace(present, environment=environment, implied=None)
    shown = {**present.environment_files, **change.environment_files}
    files = {**present.files, **change.files}
    return replace(
        present, template=change.template, environment=environment, files=files, environment_files=shown, implied=None
    )
