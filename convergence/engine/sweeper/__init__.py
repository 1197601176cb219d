"""The guarantee: what lost messages and dead processes left undone is found in the rows."""
