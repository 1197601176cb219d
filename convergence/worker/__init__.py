"""DOES: checks nodes in threads, calls resource types, stores the results, and drains on request."""
