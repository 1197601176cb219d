"""Questions and bounded tasks outside of steps, each in a transaction of its own."""
