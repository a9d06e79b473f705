# The targets are exactly what CI runs. Each makes the environment that it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO_VENV ?= .venv-demo
BENCH_VENV ?= .venv-bench
PIP_INSTALL := pip install --quiet --disable-pip-version-check -c constraints.txt
# Coverage sees inside kernels only if they are not compiled: their tests run a second time for it.
COVERAGE ?=
KERNEL_TESTS := tests/kernels
MEASURED := --cov --cov-append --cov-report=term --cov-fail-under=90
# Kernels whose arrays are filled by loops of their own: an index past an end is an error here, not a crash elsewhere.
CHECKED_TESTS := $(addprefix tests/kernels/test_,walk.py listing.py forced.py best_first.py shortlist.py compressed.py)

.PHONY: help demo test check format docs wheel release bench load slow search reproduce publish clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP_INSTALL) -e '.[dev]'
	@touch $@

$(DEMO_VENV)/bin/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/$(PIP_INSTALL) -e '.[cli,plots,service]'
	@touch $@

$(BENCH_VENV)/bin/.bench: pyproject.toml constraints.txt benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/$(PIP_INSTALL) torch==2.13.0
	$(BENCH_VENV)/bin/$(PIP_INSTALL) -r benchmarks/requirements.txt -e '.[cli,corpora,distributed,minilm,service]'
	@touch $@

demo: $(DEMO_VENV)/bin/.demo  ## the whole journey in two minutes, in an environment without torch
	$(DEMO_VENV)/bin/surelabel demo --out build/demo

# Tests share the cores by processes; threads of linear algebra beside them would only wait for each other. Two processes
# more than cores work while others wait for servers, browsers and locks.
WORKERS := $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 2)')
test: export OMP_NUM_THREADS = 1
# Empty, so that it is not set: each process that a test starts would compile the sources anew.
test: export PYTHONDONTWRITEBYTECODE =
test: $(BIN)/.dev  ## all quick tests, those of kernels with checked bounds too; COVERAGE=1 measures coverage, as CI does
	$(if $(COVERAGE),$(BIN)/coverage erase)
	$(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(if $(COVERAGE),--cov --cov-report=)
	$(if $(COVERAGE),NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -m kernels $(KERNEL_TESTS) $(MEASURED))
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/checked $(BIN)/pytest -q -n auto --dist loadfile $(CHECKED_TESTS)

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

wheel: $(BIN)/.dev  ## build the package, try it in a clean environment without extras and with [cli,plots]
	$(BIN)/python release/check.py

release: $(BIN)/.dev  ## the same, every extra alone, and the core's tests on every Python found (PATH, PYTHONS)
	$(BIN)/python release/check.py --all

bench: $(BENCH_VENV)/bin/.bench  ## benchmarks against rivals; JSON under results/
	$(BENCH_VENV)/bin/python benchmarks/engine.py --out results/engine.json
	$(BENCH_VENV)/bin/python benchmarks/lean_ball.py --out results/lean_ball.json
	$(BENCH_VENV)/bin/python benchmarks/many_labels.py --out results/many_labels.json --page docs/scaling.md
	$(BENCH_VENV)/bin/python benchmarks/shortlists.py --out results/shortlists.json --page docs/scaling.md
	$(BENCH_VENV)/bin/python benchmarks/catalogue.py --out results/catalogue.json --page docs/scaling.md
	$(BENCH_VENV)/bin/python benchmarks/mulaconf_agreement.py --out results/mulaconf.json
	$(BENCH_VENV)/bin/python benchmarks/interactions.py --out results/interactions.json
	$(BENCH_VENV)/bin/python benchmarks/watch.py --out results/watch.json
	$(BENCH_VENV)/bin/python benchmarks/streaming.py --out results/streaming.json
	$(BENCH_VENV)/bin/python benchmarks/scaling.py --out results/scaling.json --page docs/scaling.md
	$(BENCH_VENV)/bin/python benchmarks/service_load.py --out results/service.json
	$(BENCH_VENV)/bin/python benchmarks/attacks.py --out results/attacks.json
	$(BENCH_VENV)/bin/python benchmarks/text_throughput.py --plain-batches 40 --out results/text_throughput.json

BEFORE ?= ../before
load: $(BENCH_VENV)/bin/.bench  ## the service under load beside another checkout, BEFORE=folder: twelve quiet minutes
	$(BENCH_VENV)/bin/python benchmarks/service_limits.py --before $(BEFORE) --out results/service_limits.json
	$(BENCH_VENV)/bin/python benchmarks/service_load.py --out results/service.json --seconds 5

slow: $(BIN)/.dev  ## statistical tests of the theorem and other tests of minutes
	$(BIN)/pytest -q -m slow

search: $(BIN)/.dev  ## new examples of every property, twenty times as many as in a test run: half an hour
	HYPOTHESIS_PROFILE=search $(BIN)/pytest -q -n $(WORKERS) --dist loadfile $(shell grep -rl 'import hypothesis\|from hypothesis' tests --include='test_*.py')

CORPUS ?= reuters20
CLASSIFIER ?= linear
SEEDS ?= 1
reproduce: $(BIN)/.dev  ## the paper's experiments, e.g. CORPUS=reuters20 CLASSIFIER=linear SEEDS=1; resumable
	$(BIN)/surelabel reproduce $(CORPUS:%=--corpus %) $(CLASSIFIER:%=--classifier %) --seeds $(SEEDS)

publish: $(BIN)/.dev  ## tables, figures and the marked places of README and docs, from results/
	PYTHONPATH=tools $(BIN)/python -m publish

clean:  ## remove environments and build products
	rm -rf $(VENV) $(DEMO_VENV) $(BENCH_VENV) build .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
