"""Begins, ends and guards the traversals of stacks."""
