# `make demo` and `make test` do all their own set-up: they need Python 3.11, make and the package index.
PYTHON ?= python3
PACKAGES = protocol schedule scheduler launcher executor cli
STAMP = .venv/.installed

.PHONY: demo test matrix soak fuzz restarts simulate storage lint lock clean bench-burst bench-lag bench-scale bench-cli

demo: $(STAMP)
	@.venv/bin/python -m cronward.cli.demo

test: $(STAMP)
	.venv/bin/pytest -n 2

# Every failpoint × every action × every victim (docs/crash-semantics.md); the suite plays a selection.
matrix: $(STAMP)
	CRONWARD_TEST_MATRIX=all .venv/bin/pytest -n 2 tests/crash/test_matrix.py

# The same crash tests, longer: fifty stops of each daemon, a launcher that is away for a minute.
soak: $(STAMP)
	CRONWARD_TEST_HANDOVERS=50 CRONWARD_TEST_ABSENCE_S=60 .venv/bin/pytest -n 2 tests/crash

# A thousand simulated months with 200 jobs each, by as many processes as the tests use.
simulate: $(STAMP)
	.venv/bin/python -m tests.simulation

# Every I/O operation of every kind of transaction under every storage fault (docs/storage.md); the suite plays a selection.
storage: $(STAMP)
	@.venv/bin/python -m tests.storage

# Each decoder, handler and parser that takes bytes from outside gets bad ones for SECONDS.
SECONDS ?= 600
fuzz: $(STAMP)
	@.venv/bin/python -m tests.fuzz --seconds $(SECONDS)

# N restarts of the scheduler and N of the launcher under load, by TERM and by KILL alternately.
N ?= 1000
restarts: $(STAMP)
	CRONWARD_TEST_RESTARTS=$(N) .venv/bin/pytest -s --timeout 0 tests/crash/test_restarts.py

lint: $(STAMP)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench-burst bench-lag bench-scale bench-cli: bench-%: $(STAMP)
	@.venv/bin/python -m tests.bench.$*

# Everything is pinned with hashes. pip byte-compiles what it installs; our own sources are compiled here, since a
# process that has to compile its imports starts twice as slowly.
$(STAMP): requirements.lock pyproject.toml
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@echo "Installing into .venv ..."
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@.venv/bin/python -m compileall -q $(addprefix .roots/cronward/,$(PACKAGES))
	@touch $@

lock:
	uv pip compile pyproject.toml --group dev --generate-hashes --universal --python-version 3.11 --upgrade --quiet \
	  --custom-compile-command 'make lock' --output-file requirements.lock

clean:
	rm -rf .venv
