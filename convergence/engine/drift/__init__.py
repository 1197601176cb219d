"""Drift: schedules observations, accepts live values, and starts repairs."""
