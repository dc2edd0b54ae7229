# Two commands do everything: `make run` and `make test`. Each sets itself up first.

PYTHON ?= $(shell for one in python3.13 python3.12 python3.11 python3 python; do \
	command -v $$one >/dev/null 2>&1 && $$one -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$one && break; done)
BIN := .venv/bin
READY := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help setup run test check crash bench receipt lock clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1|/' | column -t -s '|'

setup: $(READY) ## set up .venv and nothing else

$(READY): requirements-dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Nightbell needs Python 3.11 or later; none was found (set PYTHON=/path/to/python3)." >&2; exit 4; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

run: $(READY) ## ring three example Schedules on real servers, for a person to watch
	$(BIN)/nightbell demo

test: check ## the whole suite, under ten minutes on two cores
	$(BIN)/python -m pytest

check: $(READY) ## lint, format, import arrows and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/basedpyright --level error

crash: $(READY) ## the long crash walk: every boundary, every process, twenty times
	$(BIN)/python -m pytest tests/crash --crash-rounds=20 -v --timeout=7200

bench: $(READY) ## measure, side by side in one run, into benchmarks/results.json
	$(BIN)/python -m benchmarks

receipt: $(READY) ## run the covenant and write receipt/receipt.json and receipt.html
	$(BIN)/nightbell receipt --out receipt

lock: $(READY) ## write the lock files anew from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.txt
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --extra dev pyproject.toml -o requirements-dev.txt

clean: ## remove what set-up and tests made here
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis receipt benchmarks/work
