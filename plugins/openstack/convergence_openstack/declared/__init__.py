"""What templates may say of each type, and ask of it: names, types, defaults and what can be changed in place."""
