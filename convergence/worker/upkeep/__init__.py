"""Repair, stop and remove: the work of a worker that follows each heartbeat."""
