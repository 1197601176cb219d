"""What an update would do, told without doing it."""
