"""What all packages of resource types of OpenStack have to agree on, whoever asks the services.

Labels, names and dependencies are the same, so one package can go on with what another has made. None of it needs a
library of OpenStack.
"""
