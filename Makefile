# Everything that a newcomer needs: Python 3.11 or newer, make, and a way to install packages.
#
#   make demo    release statistics of the Adult data and write a report, in a new folder
#   make test    formatting and lint, then types and every test but the slow ones
#   make check   formatting, lint and types only: seconds
#   make audit   audit every mechanism and every planted leak; then the slow tests, and the others and the fuzz with fresh examples
#   make docs    the documentation site, in build/site, with all links checked
#   make bench   speed and errors on this machine beside baselines: the scripts of reproductions/benchmarks
#   make venv    only the virtual environment with the package in it, without reproductions and tools
#   make clean   remove the virtual environment and everything that was generated

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start the command many times; without files of byte code each start compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check style types tests audit bench docs venv clean java

help:
	@sed -n 's/^#   //p' Makefile

# Stamps: installing again takes seconds even if nothing changed, so it is done only when a pyproject.toml has changed.
PACKAGE := $(VENV)/.package-installed
TOOLS := $(VENV)/.tools-installed

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Tacit needs Python 3.11 or newer. Name one: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(PACKAGE): pyproject.toml | $(BIN)/python
	@echo "Installing Tacit into $(VENV) (once)"
	@$(BIN)/python -m pip install -q -e .
	@touch $@

$(TOOLS): pyproject.toml reproductions/pyproject.toml | $(BIN)/python
	@echo "Installing Tacit, its reproductions and the tools that tests need into $(VENV) (once; a few minutes)"
	@$(BIN)/python -m pip install -q -e '.[dev,spark]' -e reproductions
	@touch $@ $(PACKAGE)

venv: $(PACKAGE)

demo: $(PACKAGE)
	@$(BIN)/tacit demo

check: style types

style: $(TOOLS)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(TOOLS)
	$(BIN)/mypy

# Each worker begins with its own half, in order, so that what a file shares is made once; who is done takes over.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# Types take a minute when nothing is known of them yet, on one core: the tests go on beside them.
test: style java
	@$(MAKE) --no-print-directory -j 2 types tests

tests: $(TOOLS)
	$(PYTEST) -m "not slow"

# Spark is the only thing that needs Java. Its tests skip without it; say so here, where it is seen.
java:
	@java -version > /dev/null 2>&1 \
	  || echo "NOTE: no Java found, so the Spark tests will be skipped. They need Java 17 on the PATH; all others run."

# pytest says 5 when no test has the mark
audit: $(TOOLS) java
	$(BIN)/tacit audit all
	$(PYTEST) -m slow || [ $$? -eq 5 ]
	TACIT_EXAMPLES=fresh $(PYTEST) -m "not slow" tests/statistical tests/property tests/fuzz \
	  tests/unit/release/test_row_check.py tests/unit/policy/test_where.py

bench: $(TOOLS)
	@for file in reproductions/benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

docs: $(TOOLS)
	$(BIN)/python tools/build_docs.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis tacit-demo tacit-demo-[0-9]*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
