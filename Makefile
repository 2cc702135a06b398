# `make demo` and `make check` need Python >= 3.11 (with venv) and a package index, nothing else.
# PYTHON=python3.13 names another interpreter; VENV=... another folder.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= auto
PYTEST := $(BIN)/python -m pytest -p no:cacheprovider
# The tests marked `browser` want a Chromium (Debian: apt-get install chromium). Without one they
# are left out, and that is said, unless REQUIRE_BROWSER=1: then they fail. CI sets it.
ifndef CHROMIUM
export CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
endif
BROWSER := $(CHROMIUM)$(REQUIRE_BROWSER)

.DEFAULT_GOAL := check
.PHONY: check demo test coverage lint format generate docs bench soak clean

# pytest comes last, so that its summary ends the output.
check: lint test

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	@$(if $(BROWSER),,echo "chromium not found: browser tests not run")
	$(PYTEST) -m "not soak$(if $(BROWSER),, and not browser)" -n $(JOBS) $(COVERAGE)

# Watching every line makes the tests take 1.7 x as long.
coverage: COVERAGE := --cov --cov-report=term
coverage: test

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Files made from the code; a test says when they are old.
generate: $(READY)
	$(BIN)/python -m harel_schema.frozen
	$(BIN)/python -m harel_schema.report.schemas docs/schemas
	$(BIN)/python -m tools.reference

# The site, in site/: strict, and without the network.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Every figure, and benchmarks/RESULTS.md. Do nothing else meanwhile.
bench: $(READY)
	$(BIN)/python benchmarks/run.py

# Stops after SOAK seconds.
SOAK ?= 7200
soak: $(READY)
	$(PYTEST) -m soak -n $(JOBS) --timeout=$(SOAK) --session-timeout=$(SOAK)

clean:
	rm -rf $(VENV) dist build site .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python >= 3.11 is needed; name one with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[harel,server]' --group dev --group docs
	@touch $@
