"""The guarantee that no work is lost: the sweeper finds in the rows the work of lost messages and dead processes."""
