SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
export PYTHON
# The tests start hundreds of interpreters; without compiled modules each compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
INTEROP := 4.0.2 14.0.2
# What the benchmarks compare with, beside official Lance.
PEERS := peers spark-4.1 spark-4.2
ENVIRONMENTS := .venv/.installed $(INTEROP:%=.interop/%/.synced) .interop/client/.synced

# What `make test` runs; override it to run less: make test TESTS=tests/unit/format
TESTS ?= tests

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9. -]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(ENVIRONMENTS) ## Build every environment (the other targets do it when needed)

.PHONY: test
test: setup ## Run the tests (TESTS=path for a part of them)
	$(BIN)/pytest -n 2 --dist worksteal --durations=15 $(TESTS)

FAST := tests/unit/{format,txn,commit,storage,expr,data,index,scan,table,maintenance,feed,describe,core,engine}

.PHONY: test-fast
test-fast: .venv/.installed ## Run the tests of the core alone, without Spark and official releases
	LANCELAKE_INTEROP=/nonexistent $(BIN)/pytest -n 2 --dist worksteal $(FAST)

.PHONY: coverage
coverage: .interop/python-3.13/.synced ## Compare the lines that the tests of the core run with coverage.toml (UPDATE=--update writes it)
	rm -rf build/coverage
	LANCELAKE_INTEROP=/nonexistent .interop/python-3.13/bin/python -m pytest -p scripts.coverage_figures -n 2 --dist worksteal $(FAST)
	.interop/python-3.13/bin/python scripts/coverage_figures.py $(UPDATE)

.PHONY: test-all
test-all: test test-spark-4.1 test-spark-4.2 test-python-3.12 test-python-3.13 test-python-3.14 test-oldest test-libraries test-lancedb test-ui ## Run all tests on all supported versions of Python and Spark, which takes hours

.PHONY: test-spark-4.1 test-spark-4.2
test-spark-4.1 test-spark-4.2: test-spark-%: setup .interop/spark-%/.synced ## Run the Spark tests on an older Spark
	.interop/spark-$*/bin/pytest -n 2 --dist worksteal tests/spark

.PHONY: test-python-3.12 test-python-3.13 test-python-3.14
test-python-3.12 test-python-3.13 test-python-3.14: test-python-%: setup .interop/python-%/.synced ## Run the tests on a newer Python (TESTS=tests/unit for a part)
	.interop/python-$*/bin/pytest -n 2 --dist worksteal $(TESTS)

.PHONY: test-oldest
test-oldest: .interop/oldest/.synced ## Run the tests of the core and the commands with the oldest dependencies
	LANCELAKE_INTEROP=/nonexistent .interop/oldest/bin/pytest -n 2 --dist worksteal --ignore tests/unit/spark tests/unit tests/cli tests/property

.PHONY: test-libraries
test-libraries: setup .interop/libraries/.synced ## Run the tests with Hugging Face, Ray and a notebook kernel
	.interop/libraries/bin/pytest tests/libraries

.PHONY: test-lancedb
test-lancedb: setup .interop/peers/.synced ## Run the tests with LanceDB (skipped by `make test` where it is not installed)
	$(BIN)/pytest -n0 tests/interop/test_lancedb.py

.PHONY: test-ui
test-ui: setup ## Run the tests of the explorer in Chromium, which it installs as root (LARGE=10000 versions)
	command -v chromium chromedriver >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver; }
	LANCELAKE_UI_LARGE=$(or $(LARGE),10000) $(BIN)/pytest -n0 tests/ui

.PHONY: jar
jar: .venv/.installed ## Compile the jar of the Spark connector from java/
	$(BIN)/python scripts/jar.py

.PHONY: java
java: setup .interop/spark-4.1/.synced .interop/spark-4.2/.synced ## Run the tests of the Java classes on each supported Spark
	for python in .interop/spark-4.1 .interop/spark-4.2 .venv; do $$python/bin/pytest -n0 tests/spark/test_java_classes.py; done

.PHONY: faults
faults: setup ## Kill parts of Spark applications, each in turn, many times (ROUNDS=20)
	LANCELAKE_FAULT_ROUNDS=$(or $(ROUNDS),20) $(BIN)/pytest -n0 tests/spark_faults

.PHONY: spark-storm
spark-storm: setup ## Kill drivers of streams out of a changing table, and executors of jobs (KILLS=30 SEED=1)
	LANCELAKE_STREAM_KILLS=$(or $(KILLS),30) LANCELAKE_STREAM_SEED=$(SEED) LANCELAKE_EXECUTOR_KILLS=$(or $(KILLS),30) $(BIN)/pytest -n0 -s tests/spark_faults/test_stream_storm.py tests/spark_faults/test_executor_storm.py

.PHONY: memwal
memwal: setup ## Kill processes of a MemWAL, and try all orders of its writers and collectors (KILLS=200 SEEDS=300)
	LANCELAKE_MEMWAL_KILLS=$(or $(KILLS),200) LANCELAKE_MODEL_SEEDS=$(or $(SEEDS),300) LANCELAKE_MODEL_RUNS=0 $(BIN)/pytest -n0 tests/fault/test_memwal_storm.py tests/model/test_memwal_collection.py tests/model/test_memwal_states.py

.PHONY: random-spark
random-spark: setup ## Random queries and statements of Spark against Parquet and a model (QUERIES=4000 SEED=1)
	LANCELAKE_RANDOM_SPARK=$(or $(QUERIES),4000) LANCELAKE_RANDOM_SEED=$(SEED) $(BIN)/pytest -n0 tests/spark/test_random_sql.py

.PHONY: text-parity
text-parity: setup ## Random text queries of a large corpus against official Lance (DOCUMENTS=1000000 QUERIES=2000)
	LANCELAKE_TEXT_DOCUMENTS=$(or $(DOCUMENTS),1000000) LANCELAKE_TEXT_QUERIES=$(or $(QUERIES),2000) $(BIN)/pytest -n0 tests/interop/test_text_corpus.py

.PHONY: random-indices
random-indices: setup ## Random filters by indices against scans and official Lance (PREDICATES=10000)
	LANCELAKE_INDEX_PREDICATES=$(or $(PREDICATES),10000) $(BIN)/pytest -n 2 tests/property/test_index_search.py tests/interop/test_index_search.py

.PHONY: vector-recall
vector-recall: setup ## Recall of vector indices against official Lance (ROWS=1000000)
	LANCELAKE_RECALL_ROWS=$(or $(ROWS),1000000) $(BIN)/pytest -n0 -rP tests/interop/test_vector_recall.py

.PHONY: examples
examples: setup ## Run the examples of all docstrings and pages
	LANCELAKE_EXAMPLES=all $(BIN)/pytest -n0 tests/docs

.PHONY: check lint types layers sizes public-api locks
check: lint types layers sizes public-api locks ## Lint, format, types, layers, sizes, public API, lock files

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy --strict

layers: setup
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/figures.py --check

sizes: setup
	$(BIN)/python scripts/check_sizes.py

public-api: setup
	$(BIN)/python scripts/public_api.py

locks: setup
	$(BIN)/python scripts/check_locks.py

.PHONY: api
api: setup ## Write api.txt, the public names and signatures
	$(BIN)/python scripts/public_api.py --update

.PHONY: figures
figures: setup ## Print the size of the source tree, its import cycles and repeated names
	$(BIN)/python scripts/figures.py

.PHONY: fmt
fmt: .venv/.installed ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: proto
proto: .interop/protoc/.synced ## Generate src/lancelake/proto from protos/
	.interop/protoc/bin/python -m grpc_tools.protoc -I protos --python_out=src --pyi_out=src protos/lancelake/proto/*.proto

.PHONY: docs
docs: .venv/.installed ## Build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.PHONY: diagrams
diagrams: .venv/.installed ## Draw the diagrams of the documentation again (npm and Chromium)
	mkdir -p build && cd build && npm pack --silent mermaid@11 && tar xzf mermaid-11.*.tgz package/dist/mermaid.min.js
	$(BIN)/python scripts/diagrams.py build/package/dist/mermaid.min.js

.PHONY: bench
bench: setup $(PEERS:%=.interop/%/.synced) ## Run the benchmarks (ARGS="--only tpch" for a part of them)
	$(BIN)/python -m benchmarks.run $(ARGS)

MINUTES ?= 10
SEED ?= 1

.PHONY: soak
soak: setup ## Many writers, readers and faults at once (MINUTES=10 SEED=1 ARGS="--docs")
	$(BIN)/python -m soak.run --minutes $(MINUTES) --seed $(SEED) $(ARGS)

.PHONY: demo
demo: .venv/.installed ## Run the pipeline on local Spark, on generated data (ARGS="--rows 100000")
	$(BIN)/python examples/demo.py $(ARGS)

.interop/spark-%/.synced: requirements/spark-%.lock .venv/.uv/.ready scripts/install.sh pyproject.toml
	@echo "setting up .interop/spark-$*"
	@mkdir -p .interop
	@scripts/install.sh .interop/spark-$* $<
	@UV_SYSTEM_CERTS=1 .venv/.uv/bin/uv pip install --quiet --offline --no-deps --no-build-isolation --python .interop/spark-$*/bin/python --editable .
	@touch $@

.interop/oldest/.synced .interop/peers/.synced .interop/libraries/.synced: .interop/%/.synced: requirements/%.lock .venv/.uv/.ready scripts/install.sh pyproject.toml
	@echo "setting up .interop/$*"
	@mkdir -p .interop
	@scripts/install.sh .interop/$* $<
	@UV_SYSTEM_CERTS=1 .venv/.uv/bin/uv pip install --quiet --offline --no-deps --no-build-isolation --python .interop/$*/bin/python --editable .
	@touch $@

.interop/python-%/.synced: requirements/dev.lock .venv/.uv/.ready scripts/install.sh pyproject.toml
	@echo "setting up .interop/python-$*"
	@mkdir -p .interop
	@PYTHON=$$(scripts/find_python.sh $*) && export PYTHON && scripts/install.sh .interop/python-$* $<
	@UV_SYSTEM_CERTS=1 .venv/.uv/bin/uv pip install --quiet --offline --no-deps --no-build-isolation --python .interop/python-$*/bin/python --editable .
	@touch $@

.interop/protoc/.synced: requirements/protoc.lock .venv/.uv/.ready scripts/install.sh
	@echo "setting up .interop/protoc"
	@mkdir -p .interop
	@scripts/install.sh .interop/protoc $<
	@touch $@

.PHONY: dist
dist: .venv/.installed ## Build the wheel and the source archive into dist/
	rm -rf dist
	$(BIN)/python -m hatchling build

.PHONY: lock
lock: .venv/.uv/.ready ## Resolve the lock files again
	scripts/lock.sh

.PHONY: clean
clean: ## Remove environments, caches and built things
	rm -rf .venv .interop .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.uv/.ready: requirements/bootstrap.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	@echo "setting up uv"
	@$(PYTHON) -m venv .venv/.uv
	@.venv/.uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.venv/.synced: requirements/dev.lock .venv/.uv/.ready scripts/install.sh
	@echo "setting up .venv: $$(grep -c '==' $<) packages"
	@scripts/install.sh .venv $<
	@touch $@

.venv/.installed: .venv/.synced pyproject.toml
	@UV_SYSTEM_CERTS=1 .venv/.uv/bin/uv pip install --quiet --offline --no-deps --no-build-isolation --python $(BIN)/python --editable .
	@touch $@

.interop/%/.synced: requirements/interop-%.lock .venv/.uv/.ready scripts/install.sh
	@echo "setting up .interop/$*"
	@mkdir -p .interop
	@scripts/install.sh .interop/$* $<
	@touch $@
