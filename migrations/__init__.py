"""Alembic migrations of the database schema, shipped inside the package as `convergence.migrations`."""
