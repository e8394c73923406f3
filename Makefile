# Every target brings what it needs: a virtual environment, the packages, the compiled plugin.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLASSES := $(VENV)/spark-classes.jsa
PARALLEL := --numprocesses 4 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test unit thorough chaos lint format plugin docs site wheel release-check bench bench-peers bench-test clean

help: ## Show what there is.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: plugin ## Run the main job on an embedded broker (ARGS="--seconds 30" for options).
	$(BIN)/tailrace demo $(ARGS)

test: plugin $(CLASSES) ## Pass the tests (ARGS="tests/unit" for some of them).
	$(BIN)/python jvm/test.py
	$(BIN)/python tools/run_tests.py $(PARALLEL) $(ARGS)

unit: plugin $(CLASSES) ## Pass the unit tests: jvm/test, then tests/unit (ARGS="-k origin" for some of the latter).
	$(BIN)/python jvm/test.py
	$(BIN)/pytest tests/unit $(ARGS)

thorough: plugin $(CLASSES) ## Pass the variants that make test leaves out (ARGS="-k joins" for some of them).
	$(BIN)/pytest -m 'thorough and not chaos' $(PARALLEL) $(ARGS)

chaos: plugin ## Pass the long tests: kills, clusters, comparisons.
	SPARK_SUBMIT_OPTS= $(BIN)/pytest -m chaos $(ARGS)

lint: plugin ## Check style and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python jvm/format.py --check
	$(BIN)/mypy
	@# Each application is a program of its own, with modules of the same names.
	for folder in examples/[a-z]*/; do (cd $$folder && \
	  $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.mypy_cache .) || exit 1; done

format: $(READY) ## Put the sources into their canonical form.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python jvm/format.py

plugin: $(READY) ## Compile the Scala plugin if its sources changed.
	@$(BIN)/python jvm/build.py

docs: plugin ## Write the pages that are generated.
	$(BIN)/python -m tools.generate_docs

site: $(READY) ## Build the documentation into build/site, and check every link.
	@$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/mkdocs build --quiet
	@echo "build/site is ready. To search it: $(BIN)/python -m http.server --directory build/site"

wheel: plugin ## Build dist/tailrace-*.whl with the plugin inside.
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .

release-check: plugin ## Check that this commit can be released: sdist, wheel, version, changelog, a run from the wheel.
	$(BIN)/python tools/release_check.py

bench: plugin ## Measure the figures of the documentation (minutes).
	$(BIN)/python -m benchmarks.defaults
	$(BIN)/python -m benchmarks.python_operators
	$(BIN)/python -m benchmarks.bad_records
	$(BIN)/python -m benchmarks.latency_probes
	$(BIN)/python -m benchmarks.check
	$(BIN)/python -m benchmarks.epoch_boundary
	$(BIN)/python -m benchmarks.overlap
	$(BIN)/python -m benchmarks.boundary_settings
	$(BIN)/python -m benchmarks.state_commit
	$(BIN)/python -m benchmarks.shuffle_launch
	$(BIN)/python -m benchmarks.cold_start
	$(BIN)/python -m benchmarks.exactly_once
	$(BIN)/python -m benchmarks.postgresql
	$(BIN)/python -m benchmarks.redis
	$(BIN)/python -m benchmarks.recovery
	$(BIN)/python -m benchmarks.stateful

bench-peers: plugin ## Measure Tailrace beside other systems, in less than 30 minutes (ARGS="--rounds 3" for options).
	$(BIN)/tailrace bench --system all --warm-up 15 --seconds 25 $(ARGS)

bench-test: plugin ## Pass the tests of every system and workload of tailrace bench (ARGS="-k flink" for some of them).
	SPARK_SUBMIT_OPTS= $(BIN)/pytest -m bench tests/integration/bench $(ARGS)

clean: ## Remove everything that was built here.
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache src/tailrace/_spark/plugin/*.jar

# Spark's classes as a JVM has them in memory: the tests start dozens of JVMs, and each would load them anew.
$(CLASSES): $(READY) | plugin
	@$(BIN)/python -m tests.helpers.quick_jvm

# The environment is made once and again whenever the requirements change. Without isolation the
# editable install compiles the plugin with the PySpark that is already there.
$(READY): pyproject.toml jvm/hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "PySpark 4.3 needs Python 3.11 or later; name one with make PYTHON=python3.12")'
	@$(PYTHON) jvm/build.py --check-java
	@echo "Setting up $(VENV): PySpark, Tailrace and the tools. The first time this takes a minute or two."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --group dev "pyspark==4.3.0"
	@$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[demo,secure,web]"
	@touch $@
