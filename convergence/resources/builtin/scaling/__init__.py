"""Groups whose size follows signals, and the policies that are signalled."""
