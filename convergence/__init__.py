"""Convergence: a distributed orchestration engine.

The core decides, the worker does, the row remembers.
"""
