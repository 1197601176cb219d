"""DECIDES. Pure functions over frozen values: no I/O, no clock, no ids, no randomness, no logging."""
