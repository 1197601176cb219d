"""Scenarios on engines and workers in real threads, on a database server."""
