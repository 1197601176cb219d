"""What ``make bench`` measures, and on what. The program itself is `tests.bench`."""
