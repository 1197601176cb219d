"""Convergence: a distributed orchestration engine.

The core decides, the worker does, the row remembers.
"""

__version__ = '0.1.0'
