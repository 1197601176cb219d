"""Notifications about stacks, over a message bus and webhooks."""
