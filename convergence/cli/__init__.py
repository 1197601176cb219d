"""The command line ``convergence``. It is a client of the REST API."""
