"""The scenario language, random programs, and the comparison of the cloud with a goal."""
