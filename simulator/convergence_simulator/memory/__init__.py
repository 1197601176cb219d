"""The same store on rows in memory, for the simulator."""
