"""The simulated world: clock, processes, network, faults, and the engines and workers of production on them."""
