"""Tells those outside what happens to stacks: a message bus, and webhooks."""
