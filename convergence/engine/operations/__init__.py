"""What callers ask to be done with stacks: each operation checked, planned and started."""
