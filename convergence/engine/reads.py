"""The reading side of the engine: the parts that answer what changes nothing, except the preview of an update."""

from __future__ import annotations

from convergence.engine.explain import ExplainReads
from convergence.engine.history import HistoryReads, ProgressReads
from convergence.engine.installation_reads import InstallationReads
from convergence.engine.resource_reads import ResourceReads
from convergence.engine.stack_reads import StackReads

__all__ = ['ExplainReads', 'HistoryReads', 'InstallationReads', 'ProgressReads', 'ResourceReads', 'StackReads']
