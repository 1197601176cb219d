"""The parts that all long-running programs share: configuration, start, signals, child processes, memory."""
