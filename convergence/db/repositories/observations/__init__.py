"""Observations: schedule, leases, results and repairs."""
