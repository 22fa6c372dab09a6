# Everything is run from here; each target first makes sure of .venv.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types style page fmt bench stress screenshots lock clean

BIN := .venv/bin
WORKERS ?= 4
# pytest and its plugins would be compiled anew by each of its workers.
unexport PYTHONDONTWRITEBYTECODE
AT_ONCE := $(MAKE) --no-print-directory --jobs=2 --output-sync
# Beside others on a loaded machine a test may meet a moment that its author did not think of. It is
# told with its cause, and tried once more by itself; what fails again has failed.
ALONE = { [ $$? -eq 1 ] && echo 'test: what failed is tried once more, alone' && \
	$(BIN)/pytest -n 1 --dist loadgroup --last-failed --last-failed-no-failures none; }
# Playwright brings its own node, which needs libatomic1.
CHROMIUM := chromium chromium fonts-dejavu-core libatomic1
PAGE := $(shell find ui src/penstock -name node_modules -prune -o -name static -prune -o \
	-name __pycache__ -prune -o -name schema.d.ts -o -name openapi.json -o -type f -print)

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.ui ## make .venv from requirements.lock, and build the web page

.venv/.ready: requirements.lock pyproject.toml
	@scripts/bootstrap

.venv/.ui: .venv/.ready scripts/ui $(PAGE)
	@scripts/ui
	@touch $@

demo: setup ## load a small data platform and look at it (KEEP=1 leaves the server running)
	@$(BIN)/penstock demo $(if $(filter 1,$(KEEP)),--keep)

test: setup ## lint, then every test (WORKERS=4 at a time)
	@$(AT_ONCE) types style page
	@scripts/zookeeper
	@scripts/installed $(CHROMIUM)
	@scripts/installed curl curl
	@scripts/installed sqlite3 sqlite3
	@scripts/installed nginx nginx-light
	@scripts/installed javac default-jdk-headless
	@$(BIN)/pytest -n $(WORKERS) --dist loadgroup || $(ALONE)

lint: setup ## style, types and the direction of imports
	@$(AT_ONCE) types style

types:
	@$(BIN)/mypy

style:
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports --no-logo

page:
	@cd ui && PATH="$(CURDIR)/$(BIN):$$PATH" npm test --silent

fmt: setup ## put the code in order
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: setup ## measure, and write the report
	@scripts/zookeeper
	@scripts/installed $(CHROMIUM)
	@$(BIN)/python -m bench

stress: setup ## search long for rare failures
	@scripts/zookeeper
	@scripts/installed curl curl
	@scripts/installed sqlite3 sqlite3
	@scripts/installed nginx nginx-light
	@scripts/installed javac default-jdk-headless
	@$(BIN)/pytest -m stress -o faulthandler_timeout=0 tests/simulation
	@$(BIN)/pytest -n $(WORKERS) --both tests/doors tests/acceptance

screenshots: setup ## draw every view of the web page into build/pictures; docs keep the best
	@scripts/installed $(CHROMIUM)
	@$(BIN)/python -m tests.browser.pictures build/pictures docs/images

lock: setup ## write requirements.lock from pyproject.toml (UPGRADE=1 takes newer versions)
	@$(BIN)/uv pip compile --quiet $(if $(filter 1,$(UPGRADE)),--upgrade) --extra dev \
		--universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
		--output-file requirements.lock pyproject.toml
	@scripts/bootstrap

clean: ## remove everything that was made here
	@rm -rf ui/node_modules ui/openapi.json ui/src/api/schema.d.ts src/penstock/web/static
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
