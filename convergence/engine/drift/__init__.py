"""Drift: which objects are observed, what is accepted, and what is repaired."""
