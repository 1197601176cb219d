"""Decide which thread of which worker runs the next ready node."""
