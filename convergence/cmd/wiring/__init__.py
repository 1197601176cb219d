"""One module wires each process from settings. The programs beside this folder start and stop what it returns."""
