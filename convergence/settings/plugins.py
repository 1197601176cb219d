"""Settings of the installed packages of resource types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """The section ``plugins``."""

    prefer: Sequence[str] = option(
        (),
        'Packages that provide a resource type which several installed packages offer, most preferred first: names of '
        'manifests (openstack, heat) or of distributions (convergence-openstack), separated by commas. Packages '
        'without a place in the list come last; among those the alphabet decides and a warning says so. The built-in '
        'types are never replaced. Set the same list for all engines, workers and observers.',
        sample='openstack,heat',
    )
