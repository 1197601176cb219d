"""Questions and bounded chores outside of steps, each in a transaction of its own."""
