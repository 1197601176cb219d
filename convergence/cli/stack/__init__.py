"""``convergence stack``: one module for each group of commands."""
