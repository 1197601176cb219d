"""`convergence …` for people: what a terminal shows. Speaks the REST API, like any other client."""
