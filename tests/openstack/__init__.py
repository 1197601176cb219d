"""A real control plane of OpenStack for tests: only the hypervisor, the disks and the wires are missing."""
