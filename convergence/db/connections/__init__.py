"""Connections to a database: drivers, errors, and the engine of a process."""
