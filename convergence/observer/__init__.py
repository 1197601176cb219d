"""SEES: leases objects, asks their types what is really there, writes that down; decides and touches nothing."""
