"""Scenarios on real processes."""
