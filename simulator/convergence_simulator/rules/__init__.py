"""Invariants. A checker tests them after every commit and after every change of the cloud."""
