"""Reads the templates and environments that users send, in each form that a request allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convergence import errors, template
from convergence.core.model import Json
from convergence.engine.compile.cache import LastUsed, made_from
from convergence.engine.compile.submission import Submission
from convergence.template.environment import VALUES
from convergence.template.merging import laid_over, merge_environments
from convergence.template.problems import Problems
from convergence.template.sources import read as read_source

GivenEnvironment = Mapping[str, Json] | str
"""An environment as users send it: a map, or its text."""


class SubmissionReader:
    """Reads templates and environments.

    :param limits: what a template may hold.
    :param installation: reads templates without the checks of custom constraints.
    :param most_bytes: size of the cache of declared parameters.
    """

    def __init__(self, limits: template.Limits, installation: template.Installation, most_bytes: int) -> None:
        self._limits = limits
        self._accepted = installation
        self._declared: LastUsed[Mapping[str, template.Parameter]] = LastUsed(most_bytes)

    def read(
        self,
        source: str | Mapping[str, Json],
        params: GivenEnvironment | Sequence[GivenEnvironment] | None = None,
        files: Mapping[str, str] | None = None,
        environment_files: Sequence[str] | None = None,
    ) -> Submission:
        """Read the submission of a request.

        :param params: an environment, or several: each overrides those before it.
        :param environment_files: names among the `files`; their merged content overrides `params`.
        :raises StackValidationFailed: carries the problems of the environment files.
        """
        self._limits.check_names('files', files or {})
        environment, files = self.environment(params or {}), dict(files or {})
        if environment_files:
            # The types of the parameters decide how values are merged, even if the template has other problems.
            declared = self._declares(source, files)
            environment = merge_environments(environment_files, files, environment, declared, self._limits)
        # The environment files are merged now. They are kept apart, because they may contain secrets.
        said = {name: files.pop(name) for name in dict.fromkeys(environment_files or ())}
        return Submission(source, environment, files, said)

    def _declares(self, source: str | Mapping[str, Json], files: Mapping[str, str]) -> Mapping[str, template.Parameter]:
        """The parameters that a template declares."""
        key = made_from({'template': source if isinstance(source, str) else dict(source)}, '')
        declared = self._declared.get(key)
        if declared is None:
            compiled = template.analyse(
                source,
                identity=template.StackIdentity('', '', ''),
                files=files,
                installation=self._accepted,
                require_parameters=template.Require.NONE,
            )
            declared = compiled.parameters
            if not len(compiled.problems):
                self._declared.keep(key, declared)
        return declared

    def document(self, source: str | Mapping[str, Json]) -> dict[str, Json]:
        """A template as a map.

        :raises StackValidationFailed: it is no document.
        """
        problems = Problems()
        root = read_source(source, 'template', self._limits, problems).root
        problems.raise_any()
        return dict(root) if isinstance(root, dict) else {}

    def environment(self, params: GivenEnvironment | Sequence[GivenEnvironment]) -> dict[str, Json]:
        """The sections of an environment, or of several: each overrides those before it.

        :raises StackValidationFailed: carries the problems of a text.
        :raises RequestLimitExceeded: it has too many parameter names.
        """
        whole: dict[str, Json] = {}
        for layer in [params] if isinstance(params, (str, Mapping)) else params:
            sections = self._sections(layer) if isinstance(layer, str) else layer
            for name in VALUES:
                values = sections.get(name)
                self._limits.check_names(f'{name} of the environment', values if isinstance(values, dict) else {})
            whole = laid_over(whole, sections)
        return whole

    def _sections(self, text: str) -> dict[str, Json]:
        problems = Problems()
        root = read_source(text, 'environment', self._limits, problems).root if text.strip() else {}
        problems.raise_any()
        if not isinstance(root, dict):
            raise errors.StackValidationFailed('The environment is not a valid YAML mapping data type.')
        return dict(root)
