# make demo      a first stack in one process; needs nothing but Python 3.11 and its venv module
# make test      the tests of each commit, in a virtual environment of tox's own: all but those with the mark "long"
# make test-quick   the tests that need no server and no process of their own, in under a minute
# make test-long   the tests with the mark "long", and random examples at their full number
# make test-all    both in one run, as CI does it
# make coverage  the coverage of the core by its own tests
# make lowest    tests of all uses of libraries, with the lowest versions that setup.cfg allows
# make heat      the resource types of openstack-heat, beside the installed classes; needs some 400 MiB
# make openstack   a real control plane of OpenStack on this machine, and those types against it; needs MariaDB, RabbitMQ,
#                gcc, 2 GiB of memory; ARGUMENTS=start, status, env, stop, remove; ARGUMENTS="--keep -k rollback"
# make lint      style, types, import contracts
# make docs      the documentation as a site, in build/docs/index.html
# make links     check the links of the documentation to other sites; needs a network
# make bench     figures of this machine; ARGUMENTS="--quick", "--only share idle", "--against REVISION", "--profile DIRECTORY"
# make figures   measure all figures of docs/measured.rst and write them; takes two hours on a quiet machine
# make simulate  random orders of events and random programs, with faults, for a minute; ARGUMENTS="--time 600" for longer
# make chaos     kill, freeze, cut off and restart real processes and servers; ARGUMENTS="--only storm --time 600"
# make sockets   open hundreds of slow connections to the API, and measure its answers to other clients
# make fuzz      send random input to the readers of templates, environments and requests; ARGUMENTS="api --role reader"
# make mutants   break single lines of the engine on purpose; the simulator must notice each
# make config    rewrite etc/convergence/convergence.conf.sample and policy.yaml.sample
# make constraints   rewrite constraints.txt with the newest versions of all requirements; run make test before a commit
# make clean     remove the files of all targets, except convergence-data

PYTHON ?= python3
PIP := -m pip install --quiet --disable-pip-version-check
VENV := .venv
TOX_VENV := .tox/bootstrap
TOX := $(or $(shell command -v tox),$(wildcard $(VENV)/bin/tox),$(TOX_VENV)/bin/tox)
ARGUMENTS ?=

.PHONY: help test test-quick test-long test-all coverage lowest heat openstack lint docs links constraints demo bench figures simulate chaos sockets fuzz mutants config clean

help:
	@sed -n '/^# make/,/^$$/s/^# //p' Makefile

test: $(TOX)
	$(TOX) -q -e tests $(if $(ARGUMENTS),-- $(ARGUMENTS))

test-quick: $(TOX)
	$(TOX) -q -e quick $(if $(ARGUMENTS),-- $(ARGUMENTS))

test-long: $(TOX)
	$(TOX) -q -e long $(if $(ARGUMENTS),-- $(ARGUMENTS))

test-all: $(TOX)
	$(TOX) -q -e all $(if $(ARGUMENTS),-- $(ARGUMENTS))

coverage: $(TOX)
	$(TOX) -q -e coverage $(if $(ARGUMENTS),-- $(ARGUMENTS))

lowest: $(TOX)
	$(TOX) -q -e lowest $(if $(ARGUMENTS),-- $(ARGUMENTS))

heat: $(TOX)
	$(TOX) -q -e heat $(if $(ARGUMENTS),-- $(ARGUMENTS))

openstack: $(TOX)
	$(TOX) -q -e openstack $(if $(ARGUMENTS),-- $(ARGUMENTS))

lint: $(TOX)
	$(TOX) -q -e lint

docs: $(TOX)
	$(TOX) -q -e docs

links: $(TOX)
	$(TOX) -q -e links

demo: $(VENV)/installed
	@$(VENV)/bin/python -m convergence.cmd.demo $(ARGUMENTS)

bench: $(VENV)/installed
	@$(VENV)/bin/python -m tests.bench $(ARGUMENTS)

# These sizes are for the plots; the other scenarios have sizes of their own.
figures: $(VENV)/installed
	@$(VENV)/bin/python $(PIP) --editable '.[bench]' --editable ./simulator
	@$(VENV)/bin/python -m tests.bench --only operations workers nested requests stored crowd share idle giant \
		--sizes 100 1000 10000 --json docs/figures.json $(ARGUMENTS)
	@$(VENV)/bin/python -m tests.bench.report

# Every other seed has faults. Runs without faults show defects that the sweeper would repair.
simulate: $(VENV)/installed
	@$(VENV)/bin/python -m convergence_simulator --time 60 --jobs 2 --alternate \
		--drop 0.02 --double 0.02 --crash 0.002 --lag 0.005 --drift 0.002 --in-a-row 4 --random 0:100 --trees 0:100 \
		$(ARGUMENTS) tests/scenarios

chaos: $(VENV)/installed
	@$(VENV)/bin/python $(PIP) --editable '.[test]' --editable ./simulator
	@$(VENV)/bin/python -W ignore -m tests.chaos $(ARGUMENTS)

sockets: $(VENV)/installed
	@$(VENV)/bin/python -W ignore -m tests.sockets $(ARGUMENTS)

fuzz: $(VENV)/installed
	@$(VENV)/bin/python $(PIP) --editable '.[test,fuzz]' --editable ./simulator
	@nice -n 10 $(VENV)/bin/python -W ignore -m tests.fuzz $(ARGUMENTS)

mutants: $(VENV)/installed
	@$(VENV)/bin/python -m simulator.tests.mutants $(ARGUMENTS)

config: $(VENV)/installed
	@$(VENV)/bin/oslo-config-generator --config-file etc/convergence/generator.conf
	@$(VENV)/bin/oslopolicy-sample-generator --config-file etc/convergence/policy-generator.conf

# A new environment each time: pip keeps versions that are installed already.
constraints:
	@rm -rf .tox/constraints && $(PYTHON) -m venv .tox/constraints
	@.tox/constraints/bin/python $(PIP) --editable '.[test,lint,docs,keystone,mysql,postgresql]' --editable ./simulator
	@echo '# The versions with which all tests ran; not what is required, that is in setup.cfg. Written by: make constraints' \
		>constraints.txt
	@.tox/constraints/bin/python -m pip freeze --disable-pip-version-check --exclude-editable >>constraints.txt

clean:
	@test ! -d .openstack || echo 'The control plane stays: make openstack ARGUMENTS=remove'
	rm -rf .tox $(VENV)/installed build dist *.egg-info

# The installation is editable: it becomes stale by new requirements and entry points, not by changed code.
$(VENV)/installed: setup.cfg pyproject.toml simulator/setup.cfg
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@echo 'Installing Convergence into $(VENV) ...'
	@$(VENV)/bin/python $(PIP) --editable '.[mysql,postgresql]' --editable ./simulator
	@touch $@

$(TOX_VENV)/bin/tox:
	@echo 'Installing tox into $(TOX_VENV) ...'
	@$(PYTHON) -m venv $(TOX_VENV)
	@$(TOX_VENV)/bin/python $(PIP) 'tox>=4.11'
