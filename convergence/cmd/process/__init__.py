"""What the long-running programs share: configuration, start, signals, child processes, memory."""
