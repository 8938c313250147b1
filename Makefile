# Everything runs in a virtual environment of its own, made on first use and renewed when pyproject.toml changes.
# PYTHON is the interpreter it is made from, which has an environment of its own unless it is the usual one, as
# .venv-python3.13; JOBS is the number of test processes, PYTHONS the interpreters of test-pythons.

PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
JOBS ?= 2
VENV := .venv$(patsubst %,-%,$(filter-out python3,$(notdir $(PYTHON))))
BIN := $(VENV)/bin

.PHONY: demo test test-slow test-part test-pythons test-hosts test-hosts-all lint bench fuzz clean

demo: $(VENV)/examples.stamp
	$(BIN)/python examples/digits.py
	$(BIN)/python examples/trained_digits.py
	$(BIN)/python examples/resnet50.py
	$(BIN)/python examples/read_text.py

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) -rs -m "not slow"

test-slow: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) -rs -m slow

test-part: $(VENV)/tests.stamp
	$(BIN)/python -m pytest -n $(JOBS) -q -m "not slow" $(PART)

test-pythons:
	tools/test-pythons $(PYTHONS)

test-hosts: $(VENV)/dev.stamp
	$(BIN)/python tests/support/run_described.py --jobs $(JOBS)

test-hosts-all: $(VENV)/dev.stamp
	$(BIN)/python tests/support/run_described.py --jobs $(JOBS) --all znver4 x86-64-v2

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p loopwright
	$(BIN)/lint-imports

bench: $(VENV)/bench.stamp
	$(BIN)/python benchmarks/compile_time.py
	$(BIN)/python benchmarks/kernels.py --compile
	$(BIN)/python benchmarks/kernels.py --json build/kernels.json --resume
	$(BIN)/python benchmarks/models.py --json build/models.json --resume
	$(BIN)/python benchmarks/report.py build/kernels.json build/models.json > benchmarks/RESULTS.md

fuzz: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS) tests/fuzz/test_files_fuzz.py
	$(BIN)/python tests/fuzz/campaign.py --jobs $(JOBS)
	$(BIN)/python tests/fuzz/call_campaign.py operators --jobs $(JOBS)
	$(BIN)/python tests/fuzz/call_campaign.py graphs --jobs $(JOBS)
	$(BIN)/python tests/fuzz/call_campaign.py loops --jobs $(JOBS)
	$(BIN)/python tests/fuzz/call_campaign.py contrib --jobs $(JOBS)
	LOOPWRIGHT_HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n $(JOBS) tests/fuzz/test_simplify_fuzz.py

clean:
	rm -rf .venv .venv-* build dist *.egg-info .src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp an extra: .venv/dev.stamp says that `pip install -e .[dev]` was done for the present pyproject.toml.
$(VENV)/%.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

$(VENV)/venv.stamp:
	"$$(tools/find-python $(PYTHON))" -m venv --clear $(VENV)
	touch $@
