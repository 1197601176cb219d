"""The readers of texts, with inputs that atheris chooses by the code that they reach. Wants the extra ``fuzz``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.findings import Figures

EVERY = 200
"""Inputs after which the figures are written: the library ends the process without returning."""


def in_another_process(name: str, seconds: float, seed: int) -> Figures:
    """Run a target for a time; its figures.

    :raises RuntimeError: atheris is not installed, or stopped before its time.
    """
    with tempfile.TemporaryDirectory(prefix='convergence-fuzz-') as directory:
        place = Path(directory)
        limits = [f'-max_total_time={int(seconds)}', f'-seed={seed + 1}', '-max_len=20000', '-timeout=60']
        command = [sys.executable, '-W', 'ignore', '-m', 'tests.fuzz.guided', name, directory]
        ran = subprocess.run(
            [*command, *limits, '-rss_limit_mb=4096', f'-artifact_prefix={directory}/', str(place / 'corpus')],
            capture_output=True,
            text=True,
            check=False,
        )
        written = place / 'figures.json'
        if ran.returncode != 0 or not written.exists():
            raise RuntimeError(f'the guided run of {name} ended early: {ran.stderr[-2_000:]}')
        figures = Figures(**json.loads(written.read_text()))
        figures.outcomes = Counter(figures.outcomes)
        return figures


def main() -> None:
    """Run in this process, which then ends: ``python -m tests.fuzz.guided TARGET DIRECTORY ARGUMENTS``."""
    import atheris

    with atheris.instrument_imports(include=['convergence.template']):
        from tests.fuzz.language import TARGETS
    name, directory, *arguments = sys.argv[1:]
    target, place, figures = TARGETS[name], Path(directory), Figures(f'{name}, guided')
    corpus = place / 'corpus'
    corpus.mkdir(exist_ok=True)
    for number, text in enumerate(target.seeds):
        (corpus / str(number)).write_text(text)
    last_s = time.monotonic()

    def attempt(data: bytes) -> None:
        nonlocal last_s
        target.attempt(data.decode(errors='surrogateescape'), figures)
        if figures.executions % EVERY == 0 or time.monotonic() - last_s > 1:
            last_s = time.monotonic()
            (place / 'figures.json').write_text(json.dumps(vars(figures)))

    atheris.Setup([sys.argv[0], *arguments], attempt)
    atheris.Fuzz()


if __name__ == '__main__':
    main()
