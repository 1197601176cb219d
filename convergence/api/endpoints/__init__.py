"""Endpoints: each turns a call into an answer. `convergence.api.routes` has the routes."""
