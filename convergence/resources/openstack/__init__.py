"""Rules that all packages of resource types of OpenStack share.

Labels, names and dependencies are the same, so one package can continue with the objects of another. No library of
OpenStack is needed.
"""
