"""A cloud in memory, and a resource in it as a worker has it: for the tests of all packages of OpenStack's types."""
