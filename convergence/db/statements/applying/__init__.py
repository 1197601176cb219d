"""Carry out the effects of a decision, inside the transaction in which it was made."""
