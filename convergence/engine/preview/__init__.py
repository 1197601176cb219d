"""Previews: the effects of an operation, computed without performing it."""
