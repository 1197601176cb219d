"""`convergence …` for people: what a terminal shows. Speaks to the engine through rpc, like any other client."""
