"""The connection to a server: its address, credentials, and the client of the REST API."""
