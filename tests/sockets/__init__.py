"""Clients that hold a server up: sockets that say nothing, or next to nothing, and never end it."""
