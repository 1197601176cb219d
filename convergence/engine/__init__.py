"""SERVICE: stack operations, planning, and the sweeper."""
