"""Lock and read what a scope says, before anything is decided. Statements are built once, when a module is imported."""
