"""Callers of the engine: identity, permits and credentials."""
