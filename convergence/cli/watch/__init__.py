"""``--wait``: follows an operation and shows its progress."""
