"""Signals to resources: deployments, group scaling, addresses."""
