# `make demo` and `make test` do all the set-up themselves, in a virtual environment of their own.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One thread a process: processes that share cores and synchronise their threads wait for each other.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist loadfile
READY := $(VENV)/.ready

.PHONY: demo test lint types tests real-data bench clean

demo: $(READY)
	$(BIN)/dialeval demo

test: lint types tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

types: $(READY)
	$(BIN)/mypy

tests: $(READY)
	$(PYTEST) -m "not real_data and not exhaustive" --doctest-modules tests dialeval_plugin

# Needs DIALEVAL_DATA_DIR, a folder with the public corpora (dialeval data list).
real-data: $(READY)
	$(PYTEST) -m real_data tests

bench: $(READY)
	$(BIN)/python benchmarks/slm.py

$(READY): setup.cfg constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,offline]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info demo_output
