"""The software family: configurations, their deployment on servers, and servers that are there already."""
