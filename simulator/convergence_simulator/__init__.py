"""The same engine and worker under every order of events: seeded, on virtual time, with faults."""
