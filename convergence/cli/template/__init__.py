"""``convergence template``: the commands for template authors. None of them needs a server."""
