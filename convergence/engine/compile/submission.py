"""The submission of a user: the source of a stack's goal."""

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
    """The source of a stack's goal, as a user submits it.

    :param template: HOT text, or the document already parsed.
    :param environment: a mapping with the sections of an environment.
    :param environment_files: texts, by name, of files that were merged into the environment. They are only shown.
    :param implied: requirements that resource types added to the accepted template: for names of resources, the
        resources that come before them. None: the types were not queried.
    :param asked: attributes that the parent stack reads from resources of a nested stack, by resource name.
    :param facade: values of the resource that the template implements; see `template.analyse`.
    """

    template: str | Mapping[str, Json]
    environment: Mapping[str, Json] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    environment_files: Mapping[str, str] = field(default_factory=dict)
    facade: Mapping[str, Json] = field(default_factory=dict)
    implied: Implied | None = None
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def accepted(self, goal: Goal) -> Submission:
        """The submission with the requirements that resource types added to its goal."""
        return replace(self, implied=implied_in(goal.definitions))

    def itself(self) -> Submission:
        """The submission without the requirements that resource types added."""
        return replace(self, implied=None)

    def is_like(self, other: Submission) -> bool:
        """Return True if two submissions are equal, apart from the requirements that resource types added."""
        return self.itself().content() == other.itself().content()

    def circumstances(self) -> dict[str, Json]:
        """The submission without the text of the template: all other sources of a compiled template."""
        return replace(self.itself(), template='').content()

    def content(self) -> dict[str, Json]:
        """The content of a template row."""
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
        """Read the content of a template row."""
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
    """Merge a partial update: the parts that the user did not send stay unchanged.

    :param present: the present submission of the stack.
    :param change: the submission of the user; None if no template was sent.
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
