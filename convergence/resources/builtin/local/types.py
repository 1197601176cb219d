"""The types of the local provider, by name."""

from __future__ import annotations

from typing import Any

from convergence.resources.builtin.local.directory import Directory
from convergence.resources.builtin.local.file import File
from convergence.resources.builtin.local.http_check import HttpCheck
from convergence.resources.builtin.local.process import Process
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.builtin.waiting import Clock, system_clock
from convergence.resources.contract import ResourceType


def local_types(provider: LocalProvider, clock: Clock = system_clock) -> dict[str, ResourceType[Any]]:
    """The types that act within what `provider` allows."""
    return {
        'Convergence::Local::Directory': Directory(provider),
        'Convergence::Local::File': File(provider),
        'Convergence::Local::HttpCheck': HttpCheck(provider, clock),
        'Convergence::Local::Process': Process(provider, clock),
    }
