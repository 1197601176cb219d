"""The reading operations of the engine, collected, except previews."""

from __future__ import annotations

from convergence.engine.reads.drift import DriftReads
from convergence.engine.reads.explain import ExplainReads
from convergence.engine.reads.history import HistoryReads, ProgressReads
from convergence.engine.reads.installation import InstallationReads
from convergence.engine.reads.resources import ResourceReads
from convergence.engine.reads.stacks import StackReads

__all__ = [
    'DriftReads',
    'ExplainReads',
    'HistoryReads',
    'InstallationReads',
    'ProgressReads',
    'ResourceReads',
    'StackReads',
]
