"""What is done for each route: from a call to an answer. The routes themselves are in `convergence.api.routes`."""
