"""The local provider: directories, files and processes of this machine, below one configured directory.

It is off unless an operator enables it. A user who may create a stack then acts with the rights of the account that
the engine runs under: the directory limits the files that the provider itself touches, not those of an allowed
program.
"""
