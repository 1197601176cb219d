"""Compares the language with that of the reference engine, openstack-heat 27.0.1, where that is installed."""
