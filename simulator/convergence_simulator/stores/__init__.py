"""The databases of a world: rows in memory, or the SQL store on SQLite."""
