"""Composition roots: the programs. The only place that reads the configuration."""
