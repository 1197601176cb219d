"""The Orchestration API v1 over HTTP: checks a request, calls an engine, and writes the answer.

Start reading at `convergence.api.routes`, the table of all routes, and `convergence.api.application`, the path of every
request.
"""
