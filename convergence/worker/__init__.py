"""DOES: checks one node at a time per thread, drives resource types, stops on request."""
