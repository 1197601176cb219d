"""Reading operations: they change nothing."""
