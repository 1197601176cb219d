"""Compares live objects with their records: leases due objects, asks their types for the live state, stores it.

The observer decides nothing and changes no object.
"""
