"""Nested stacks: each is a stack like any other, and the object of one resource of another."""
