"""Runs of scenarios: one run, many runs, exploration of all orders of events, and reports."""
