"""One step is one transaction: lock and read, write, commit. The connection it runs on."""
