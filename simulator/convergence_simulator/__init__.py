"""Runs the engine and the workers of production under every order of events, on simulated time, with faults."""
