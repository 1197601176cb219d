"""Reads of stacks and operations for callers of the engine. Nothing here writes."""
