"""What a worker repairs, stops and removes with each heartbeat."""
