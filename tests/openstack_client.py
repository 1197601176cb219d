"""Imported before ``openstack`` is run again and again: all that it looks up and imports anew at each start.

That is 1.4 s of CPU, as often as not more than the whole rest of a test.
"""

import importlib.metadata
from functools import cache

from stevedore import ExtensionManager

importlib.metadata.packages_distributions = cache(importlib.metadata.packages_distributions)
importlib.metadata.packages_distributions()
for group in importlib.metadata.entry_points().groups:
    if group.startswith(('cliff.', 'keystoneauth1.plugin', 'openstack.')):
        ExtensionManager(group, on_load_failure_callback=lambda *failure: None)
