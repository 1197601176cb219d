# make demo      a first stack in one process; needs nothing but Python 3.11 and its venv module
# make test      every test, in a virtual environment of tox's own
# make lint      style, types, import contracts
# make bench     figures of this machine
# make simulate  random orders of events, with faults, for a minute; ARGUMENTS="--time 600" for longer
# make chaos     kill, freeze, cut off and restart real processes and servers; ARGUMENTS="--only storm --time 600"
# make mutants   break the engine on purpose, and see that it is noticed
# make config    write etc/convergence/convergence.conf.sample and policy.yaml.sample anew
# make clean     remove what the others have made, but for convergence-data

PYTHON ?= python3
PIP := -m pip install --quiet --disable-pip-version-check
VENV := .venv
TOX_VENV := .tox/bootstrap
TOX := $(or $(shell command -v tox),$(wildcard $(VENV)/bin/tox),$(TOX_VENV)/bin/tox)
ARGUMENTS ?=

.PHONY: help test lint demo bench simulate chaos mutants config clean

help:
	@sed -n 's/^# make/make/p' Makefile

test: $(TOX)
	$(TOX) -q -e tests -- $(ARGUMENTS)

lint: $(TOX)
	$(TOX) -q -e lint

demo: $(VENV)/installed
	@$(VENV)/bin/python -m convergence.cmd.demo $(ARGUMENTS)

bench: $(VENV)/installed
	@$(VENV)/bin/python -m convergence.cmd.bench $(ARGUMENTS)

# Faults at every other seed: what is found without the sweeper's help is worth as much as what it saves.
simulate: $(VENV)/installed
	@$(VENV)/bin/python -m convergence.cmd.simulate --time 60 --jobs 2 --alternate \
		--drop 0.02 --double 0.02 --crash 0.002 $(ARGUMENTS) tests/scenarios

chaos: $(VENV)/installed
	@$(VENV)/bin/python $(PIP) --editable '.[test]'
	@$(VENV)/bin/python -W ignore -m tests.chaos $(ARGUMENTS)

mutants: $(VENV)/installed
	@$(VENV)/bin/python -m tests.simulation.mutants $(ARGUMENTS)

config: $(VENV)/installed
	@$(VENV)/bin/oslo-config-generator --config-file etc/convergence/generator.conf
	@$(VENV)/bin/oslopolicy-sample-generator --config-file etc/convergence/policy-generator.conf

clean:
	rm -rf .tox $(VENV)/installed build dist *.egg-info

# The installation is editable: only new requirements and entry points make it stale, not changed code.
$(VENV)/installed: setup.cfg pyproject.toml
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@echo 'Installing Convergence into $(VENV) ...'
	@$(VENV)/bin/python $(PIP) --editable '.[mysql,postgresql]'
	@touch $@

$(TOX_VENV)/bin/tox:
	@echo 'Installing tox into $(TOX_VENV) ...'
	@$(PYTHON) -m venv $(TOX_VENV)
	@$(TOX_VENV)/bin/python $(PIP) 'tox>=4.11'
