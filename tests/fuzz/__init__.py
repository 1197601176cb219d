"""Fuzzes all readers of foreign input: ``make fuzz``, ``python -m tests.fuzz``."""
