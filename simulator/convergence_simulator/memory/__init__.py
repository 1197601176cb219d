"""The store in memory, for the simulator: the same interface as the SQL store."""
