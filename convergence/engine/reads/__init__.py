"""What callers ask to see; nothing here changes anything."""
