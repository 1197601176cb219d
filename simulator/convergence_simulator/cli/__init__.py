"""The command ``convergence-simulate``."""
