"""The local provider: directories, files and processes of this machine, below one configured directory.

It is off unless an operator enables it. Whoever may create a stack then acts with the rights of the account that the
engine runs under: the directory limits which files the provider itself touches, not what an allowed program does.
"""
