"""Sends everything that reads what others wrote what nobody meant to write: ``make fuzz``, ``python -m tests.fuzz``."""
