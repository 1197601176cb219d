"""Which of the installed packages a resource type comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        'prefer',
        default=[],
        sample_default='openstack,heat',
        help='From which package a resource type comes that several installed packages offer: names of manifests '
        '(openstack, heat) or of distributions (convergence-openstack), separated by commas, the most wanted one '
        'first. A package that is not named comes after those that are; between two of them the first name decides, '
        'and a warning says so. The types of Convergence itself stay. Say the same to all engines, workers and '
        'observers.',
    ),
]


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """Which packages are preferred.

    :param prefer: names of manifests or of distributions, the most wanted one first.
    """

    prefer: Sequence[str] = ()
