"""Statements whose SQL text is built once, and batches of them that share one round trip."""
