"""What is stored: tables, column types, sealing, versions of the schema."""
