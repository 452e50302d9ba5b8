# Two commands on a fresh machine with Python 3.11 or newer: make run, make test.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8501
BIN := .venv/bin

.PHONY: run test lint fuzz bench screenshots clean
.DEFAULT_GOAL := run

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.run: requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/.dev: requirements.txt requirements-dev.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@ .venv/.run

# Optional: torch, to time decode steps here.
.venv/.probe: requirements-probe.txt | .venv/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-probe.txt
	@touch $@

run: .venv/.run
	@echo "Draftworth: http://$(HOST):$(PORT)  (stop with Ctrl-C)"
	@$(BIN)/python -m streamlit run app.py --server.address $(HOST) --server.port $(PORT)

# The browser tests run alone: what they see of a drag depends on the machine's other work. One that
# fails is asked once more by itself, and twice is a failure.
test: .venv/.dev
	$(BIN)/python -m pytest -n 2 --ignore tests/browser
	$(BIN)/python -m pytest tests/browser || \
	  $(BIN)/python -m pytest tests/browser --last-failed --last-failed-no-failures none

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fuzz: .venv/.dev
	DRAFTWORTH_FUZZ=5000 DRAFTWORTH_KILL_ROUNDS=50 $(BIN)/python -m pytest -n 2 \
	  tests/unit/results/test_fuzz.py tests/unit/results/test_kill.py

bench: .venv/.dev
	$(BIN)/python -m bench

screenshots: .venv/.dev
	$(BIN)/python -m bench.screenshots

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
