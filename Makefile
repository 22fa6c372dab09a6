# Every target checks .venv first and builds it if it is missing or older than its lock file.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types style page fmt bench stress screenshots lock clean

BIN := .venv/bin
# Tests at a time. A few named tests start faster in one process.
WORKERS ?= $(if $(T),0,4)
# Without compiled files each pytest worker compiles pytest and its plugins again.
unexport PYTHONDONTWRITEBYTECODE
AT_ONCE := $(MAKE) --no-print-directory --jobs=2 --output-sync
# Playwright brings its own node, which needs libatomic1.
CHROMIUM := chromium chromium fonts-dejavu-core libatomic1
PAGE := $(shell find ui src/penstock -name node_modules -prune -o -name static -prune -o \
	-name __pycache__ -prune -o -name schema.d.ts -o -name openapi.json -o -type f -print)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.ui ## make .venv from requirements.lock and build the web page

.venv/.ready: requirements.lock pyproject.toml
	@scripts/bootstrap

.venv/.ui: .venv/.ready scripts/ui $(PAGE)
	@scripts/ui
	@touch $@

demo: setup ## load a small data platform and show it (KEEP=1 leaves the server running)
	@$(BIN)/penstock demo $(if $(filter 1,$(KEEP)),--keep)

ifdef T
# Named tests run without lint, the page and programs of the system: a test that needs ZooKeeper
# fails with the command that installs it.
test: .venv/.ready
	@$(BIN)/pytest -n $(WORKERS) --dist loadgroup $(T)
else
test: setup ## lint, then run all tests; T='tests/unit -k lease' runs only these, without lint
	@$(AT_ONCE) types style page
	@scripts/zookeeper
	@scripts/installed $(CHROMIUM)
	@scripts/installed curl curl
	@scripts/installed sqlite3 sqlite3
	@scripts/installed nginx nginx-light
	@scripts/installed javac default-jdk-headless
	@$(BIN)/pytest -n $(WORKERS) --dist loadgroup
endif

lint: setup ## check types, style and the direction of imports
	@$(AT_ONCE) types style

types:
	@$(BIN)/mypy

style:
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports --no-logo

page:
	@cd ui && PATH="$(CURDIR)/$(BIN):$$PATH" npm test --silent

fmt: setup ## sort imports and format the code
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@cd ui && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent format

bench: setup ## run the benchmarks and write the report
	@scripts/zookeeper
	@scripts/installed $(CHROMIUM)
	@$(BIN)/python -m bench

stress: setup ## run the long searches for rare failures, and tests on both databases
	@scripts/zookeeper
	@scripts/installed curl curl
	@scripts/installed sqlite3 sqlite3
	@scripts/installed nginx nginx-light
	@scripts/installed javac default-jdk-headless
	@$(BIN)/pytest -m stress -o faulthandler_timeout=0 tests/simulation
	@$(BIN)/pytest -n $(WORKERS) --both tests/contract tests/doors tests/acceptance

screenshots: setup ## save every view of the web page in build/pictures and those of docs
	@scripts/installed $(CHROMIUM)
	@$(BIN)/python -m tests.browser.pictures build/pictures docs/images

lock: setup ## write requirements.lock from pyproject.toml (UPGRADE=1 takes newer versions)
	@$(BIN)/uv pip compile --quiet $(if $(filter 1,$(UPGRADE)),--upgrade) --extra dev \
		--universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
		--output-file requirements.lock pyproject.toml
	@scripts/bootstrap

clean: ## remove everything that make built
	@rm -rf ui/node_modules ui/openapi.json ui/src/api/schema.d.ts src/penstock/web/static
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
