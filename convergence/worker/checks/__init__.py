"""Check one node: claim its row, run the action, store the result."""
