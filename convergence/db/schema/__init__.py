"""The schema: tables, column types, sealing, and revisions."""
