# The targets are exactly what CI runs. Each makes the environment that it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO_VENV ?= .venv-demo
BENCH_VENV ?= .venv-bench
PIP_INSTALL := pip install --quiet --disable-pip-version-check -c constraints.txt
COVERAGE ?=

.PHONY: help demo test docs-test slow search check format docs wheel bench reproduce publish clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# torch is asked for by its version, as anything open-ended takes gigabytes.
$(BIN)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP_INSTALL) torch==2.13.0
	$(BIN)/$(PIP_INSTALL) -e '.[dev]'
	@touch $@

$(DEMO_VENV)/bin/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/$(PIP_INSTALL) -e '.[app]'
	@touch $@

$(BENCH_VENV)/bin/.bench: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/$(PIP_INSTALL) torch==2.13.0
	$(BENCH_VENV)/bin/$(PIP_INSTALL) -e '.[all,minilm]'
	@touch $@

demo: $(DEMO_VENV)/bin/.demo  ## train, file, choose: the whole job on one screen, without torch
	$(DEMO_VENV)/bin/surelabel demo --out build/demo

# Tests share the cores by processes; threads of linear algebra beside them would only wait for each other.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')
test docs-test slow search: export OMP_NUM_THREADS = 1
test: $(BIN)/.dev  ## all quick tests; COVERAGE=1 measures coverage
	$(BIN)/pytest -q -n $(WORKERS) --dist loadfile $(if $(COVERAGE),--cov --cov-report=term)

docs-test: $(BIN)/.dev  ## the code of every page of the site
	$(BIN)/pytest -q -n $(WORKERS) -m docs tests/docs

slow: $(BIN)/.dev  ## statistical tests of the theorem, tests of minutes, and kernels with checked bounds
	$(BIN)/pytest -q -n $(WORKERS) --dist loadfile -m slow
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/checked $(BIN)/pytest -q -n $(WORKERS) --dist loadfile tests/core

search: $(BIN)/.dev  ## new examples of every property: half an hour
	HYPOTHESIS_PROFILE=search $(BIN)/pytest -q -n $(WORKERS) --dist loadfile $(shell grep -rl 'from hypothesis' tests --include='test_*.py')

check: $(BIN)/.dev  ## linters, types, import order, the site and its links
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/check_links.py build/site

docs: $(BIN)/.dev  ## the site, at http://127.0.0.1:8001/ and changing as pages do
	@echo "The site is at http://127.0.0.1:8001/ (Ctrl-C ends it)."
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --quiet --dev-addr 127.0.0.1:8001 --livereload

format: $(BIN)/.dev  ## rewrite files as check wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(BIN)/.dev  ## build the package and try it in a clean environment
	$(BIN)/python release/check.py

bench: $(BENCH_VENV)/bin/.bench  ## the environment of benchmarks/ (benchmarks/README.md lists them)
	@cat benchmarks/README.md

CORPUS ?= reuters20
CLASSIFIER ?= linear
SEEDS ?= 1
reproduce: $(BIN)/.dev  ## the paper's experiments, e.g. CORPUS=reuters20 CLASSIFIER=linear SEEDS=1; resumable
	$(BIN)/surelabel reproduce $(CORPUS:%=--corpus %) $(CLASSIFIER:%=--classifier %) --seeds $(SEEDS)

publish: $(BIN)/.dev  ## tables, figures and the marked places of README and docs, from results/
	PYTHONPATH=tools $(BIN)/python -m publish

clean:  ## remove environments and build products
	rm -rf $(VENV) $(DEMO_VENV) $(BENCH_VENV) build .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
