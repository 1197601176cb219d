"""Compiles templates: from a request or a stored row to a checked goal. Imports no other room but `callers`."""
