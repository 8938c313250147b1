# Everything runs in a virtual environment of its own, made on first use and renewed when pyproject.toml changes.
# PYTHON is the interpreter it is made from, JOBS the number of test processes.

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow lint bench fuzz clean

demo: $(VENV)/examples.stamp
	$(BIN)/python examples/digits.py
	$(BIN)/python examples/trained_digits.py
	$(BIN)/python examples/resnet50.py

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow"

test-slow: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) -m slow

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=.typecheck $(BIN)/mypy -p loopwright
	$(BIN)/lint-imports

bench: $(VENV)/bench.stamp
	$(BIN)/python benchmarks/kernels.py --compile
	$(BIN)/python benchmarks/kernels.py --json build/kernels.json --resume
	$(BIN)/python benchmarks/models.py --json build/models.json --resume
	$(BIN)/python benchmarks/report.py build/kernels.json build/models.json > benchmarks/RESULTS.md

fuzz: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) tests/fuzz/test_files_fuzz.py
	$(BIN)/python tests/fuzz/campaign.py --jobs $(JOBS)
	$(BIN)/python tests/fuzz/call_campaign.py operators --jobs $(JOBS)
	$(BIN)/python tests/fuzz/call_campaign.py graphs --jobs $(JOBS)
	LOOPWRIGHT_HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n $(JOBS) tests/fuzz/test_simplify_fuzz.py

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp an extra: .venv/dev.stamp says that `pip install -e .[dev]` was done for the present pyproject.toml.
$(VENV)/%.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

$(VENV)/venv.stamp:
	$(PYTHON) -m venv --clear $(VENV)
	touch $@
