# Two commands do everything: `make run` and `make test`. Each sets itself up first.

PYTHON ?= $(shell for one in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	command -v $$one >/dev/null 2>&1 && $$one -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$one && break; done)
BIN := .venv/bin
READY := .venv/ready
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
LOCK := uv pip compile --quiet --universal --generate-hashes --no-header

.DEFAULT_GOAL := help
.PHONY: help setup run test check crash soak bench receipt lock clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "  make %-8s  %s\n", $$1, $$2 }'

setup: $(READY) ## set up .venv and nothing else

$(READY): requirements-dev.txt pyproject.toml
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "Nightbell needs Python 3.11 or later; none was found. Install one, or name it: make PYTHON=/path/to/python3 $(or $(MAKECMDGOALS),setup)" >&2; exit 4; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments; install its venv package (Debian: apt-get install python3-venv)." >&2; exit 4; }
	@echo "Setting up .venv with $$($(PYTHON) --version); once, and again only when the lock changes."
	@$(PYTHON) -m venv .venv
	@$(PIP) install --require-hashes -r requirements-dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $(READY)

run: $(READY) ## ring three example Schedules on real servers, for a person to watch
	@$(BIN)/nightbell demo

test: check ## the whole suite, under ten minutes on two cores
	@$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(READY) ## lint, format, import arrows and types
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache
	@$(BIN)/basedpyright --level error

crash: $(READY) ## the long walks: every boundary, every process, twenty times each; a thousand races of an activation
	@$(BIN)/python -m pytest tests/crash tests/decisions/test_cutover.py --crash-rounds=20 --races=1000 --timeout=7200 --verbose

soak: $(READY) ## the crash walk for hours: a hundred rounds over one ledger
	@$(BIN)/python -m pytest tests/crash --crash-rounds=100 --timeout=36000 --verbose

bench: $(READY) ## measure, side by side in one run, into benchmarks/results.json
	@$(BIN)/python -m benchmarks

receipt: $(READY) ## run the covenant and write receipt/receipt.json and receipt.html
	@$(BIN)/nightbell receipt --out receipt

lock: ## write the lock files anew from pyproject.toml (needs uv)
	$(LOCK) pyproject.toml --output-file requirements.txt
	$(LOCK) pyproject.toml --extra dev --output-file requirements-dev.txt
	echo hatchling | $(LOCK) - --constraint requirements-dev.txt --output-file requirements-build.txt

clean: ## remove what set-up, checks and tests made here
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache receipt benchmarks/scratch
