"""The simulated cloud: objects, services and the resource types for them."""
