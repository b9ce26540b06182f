# The two commands a fresh machine needs are `make run` and `make test`; each makes .venv first where it is missing.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
SOURCES := flows paraagent pipelines tests

.DEFAULT_GOAL := help
.PHONY: help install run test check format fuzz bench laws up down clean lock

help: ## List the targets.
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

install: $(STAMP) ## Create .venv from requirements.lock.

# Nothing is installed again until the lock file or pyproject.toml changes.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	  echo "ParaAgent needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is $$($(PYTHON) --version 2>&1): name one, as in make run PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "creating .venv with $$($(PYTHON) --version)"; $(PYTHON) -m venv .venv; }
	@echo "installing the packages of requirements.lock into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

run: $(STAMP) ## Run the whole pipeline; ARGS="--profile smoke" for another profile.
	@$(BIN)/paraagent run $(ARGS)

test: check ## Check the code, then run every test.
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile $(ARGS)
	@echo "make test: checks and tests passed"

check: $(STAMP) ## Lint, formatting, types.
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy

format: $(STAMP) ## Bring the code into shape.
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

fuzz: $(STAMP) ## Play 10,000 broken turns; FUZZ_CATALOG=DIR takes the tools of a built catalog.
	@FUZZ_TURNS=10000 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -s tests/toolenv/test_fuzz.py

bench: $(STAMP) ## Measure the catalog build.
	@$(BIN)/paraagent bench catalog $(ARGS)

laws: $(STAMP) ## Check the eight laws of the simulated world on 2,000 tools.
	@$(BIN)/paraagent bench laws $(ARGS)

up: $(STAMP) ## Start Prefect's server, pools, deployments and workers on this machine.
	@$(BIN)/paraagent up $(ARGS)

down: $(STAMP) ## Stop what `make up` started.
	@$(BIN)/paraagent down

clean: $(STAMP) ## Remove artifacts that nothing current refers to.
	@$(BIN)/paraagent clean

lock: $(STAMP) ## Write the versions in .venv to requirements.lock.
	@$(BIN)/python -m pip freeze --all --exclude pip --exclude-editable | sed 's/+cpu$$//' > requirements.lock.new
	@mv requirements.lock.new requirements.lock
