"""Resource types: the plugin contract, property schemas, the registry and the built-in types."""
