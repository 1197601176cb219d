"""Runs of scenarios: one run, many runs, all orders of events, and the reports about them."""
