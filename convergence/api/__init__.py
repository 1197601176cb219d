"""The Orchestration API v1 over HTTP: checks a request, asks an engine, and writes the answer.

Start reading at `convergence.api.routes`, the table of everything that can be asked, and `convergence.api.application`,
the one way that every request takes.
"""
