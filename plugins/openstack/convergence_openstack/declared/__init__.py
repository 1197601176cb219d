"""The properties and attributes of each type: names, types, defaults, and the properties that can change in place."""
