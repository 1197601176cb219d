"""Compares language and types with those of the reference engine, openstack-heat 27.0.1, where that is installed."""
