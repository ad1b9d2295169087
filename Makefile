# `make test` is everything that a change must pass. Each step is a target of its own.
# ./run and ./test install what `make run` and `make test` need, then call them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

CARGO ?= cargo
PYTHON ?= python3
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
VENV := $(TARGET)/python
OWN := examples/own-scheme/Cargo.toml
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_SECONDS ?= 60
FUZZ ?= scenario flows-csv matrix-csv cdf hpcc-topology hpcc-flows traces frames manifests parquet experiments
MUTANTS ?= 300
SOAK_CASES ?= 400
SOAK_SECONDS ?= 600
SOAK_SEEDS ?= 0
# Other seeds each time.
SOAK_FROM ?= $(shell date +%s)000
PROPTEST_RNG_SEED ?= 1

# Coverage counters for libFuzzer, in flags that a stable compiler takes. With
# an explicit --target they leave build scripts and macros alone.
COVERAGE := -Cpasses=sancov-module -Ccodegen-units=1 --cfg fuzzing \
	-Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares

.PHONY: help run live test tools scripts prose format lint docs unit own-scheme same-bytes python slurm read-run read-captures viewer test-page release-check wheel bench repro repro-sweep soak swarm rooms fuzz fuzz-build clean-fuzz mutants book reference python-reference

help:
	@echo 'make run         runs a BCube network that deadlocks under PFC'
	@echo 'make live        runs four testbeds on real Ethernet frames between network namespaces'
	@echo 'make test        every check: format, lint, docs, tests, same bytes, Python readers, tshark, pages'
	@echo 'make viewer      the script and styles of xoff report, from viewer/ (needs Node.js)'
	@echo 'make book        the pages of docs as a book, in $(TARGET)/book'
	@echo 'make reference   docs/REFERENCE.md, from the JSON Schema'
	@echo 'make wheel       the Python package, in $(TARGET)/wheels, from its source distribution'
	@echo 'make python-reference  docs/PYTHON.md and the stubs, from the Python package'
	@echo 'make bench       packet-hops per second, instructions per packet-hop, two threads beside one; the scheduler of Zeropod'
	@echo 'make repro       every experiment, and docs/REPRODUCTION.md and docs/reproduction/ from its results'
	@echo 'make repro-sweep the sweeps over the load, in $(TARGET)/repro-sweep'
	@echo 'make soak        the properties on new random cases: $(SOAK_CASES) (SOAK_CASES) for each 256 of make test'
	@echo 'make swarm       whole scenarios on new seeds, for SOAK_SECONDS=$(SOAK_SECONDS) or SOAK_SEEDS=$(SOAK_SEEDS), from SOAK_FROM on'
	@echo 'make rooms       removes each folder of a protocol with its lines in the registry, and compiles all other code'
	@echo 'make fuzz        random bytes against every reader of files and frames, FUZZ_SECONDS=$(FUZZ_SECONDS) each (FUZZ=cdf for one)'
	@echo 'make mutants     mutates the code, MUTANTS=$(MUTANTS) times (or MUTANTS=all), and says what no test catches'
	@echo 'make scripts prose format lint docs unit own-scheme same-bytes python slurm read-run read-captures test-page release-check    the steps of make test'

run:
	@for tool in cc $(CARGO); do command -v $$tool >/dev/null || \
		{ echo "make run needs $$tool: ./run installs it on Debian and Ubuntu" >&2; exit 1; }; done
	$(CARGO) run --locked --profile quick --bin xoff -- run examples/bcube-deadlock.toml --overwrite

# Needs tshark only to look at the frames. Where the system forbids namespaces it says so, and succeeds.
live:
	$(CARGO) build --locked --quiet --profile quick --bin xoff
	tests/live.sh $(TARGET)/quick/xoff $(TARGET)/live

# Linking across crates makes the program faster and takes minutes, and no check measures speed.
test python python-reference: export CARGO_PROFILE_RELEASE_LTO = off
test python python-reference: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS = 16
# A failed test names its line without them.
test: export CARGO_PROFILE_DEV_DEBUG = none
test: export CARGO_PROFILE_RELEASE_DEBUG = none

test: tools scripts prose format lint docs unit own-scheme same-bytes python slurm read-run read-captures test-page release-check
	@echo 'make test: all checks passed'

# Missing tools stop `make test` at once, and not after minutes.
tools:
	@missing() { echo "make test needs $$1: ./test installs it on Debian and Ubuntu" >&2; exit 1; }; \
	PATH=$$PATH:/usr/sbin; for tool in cc $(CARGO) cmp $(PYTHON) tshark node npm slurmctld slurmd sbatch munged; do command -v $$tool >/dev/null || missing $$tool; done; \
	for tool in $(CHROMIUM) chromium chromium-browser google-chrome; do command -v $$tool >/dev/null && exit; done; \
	missing chromium

# ./run and ./test install what they should, on pretended machines. The book has no dead links.
# tools/peers.py compares xoff with others, all of them pretended.
scripts:
	tests/setup.sh
	$(PYTHON) tests/book_links.py
	$(PYTHON) tests/peers.py

# Terms, long sentences and spelling, in the pages and in the messages that tests expect.
# PROSE=--warnings lists doubtful words and passive verbs, too.
prose: tools/prose/node_modules/ready $(VENV)/ready
	node --test tools/prose/test/check.test.js
	! $(VENV)/bin/typos tools/prose/test/misspelled.txt >/dev/null
	$(VENV)/bin/typos --format brief
	node tools/prose/check.js $(PROSE)

tools/prose/node_modules/ready: tools/prose/package-lock.json tools/prose/.npmrc
	cd tools/prose && npm ci --ignore-scripts --loglevel=error
	touch $@

# Formatting as rustfmt.toml has it.
format:
	$(CARGO) fmt --all --check

# Clippy and missing documentation, as errors; and the fuzzer's own lock file fits.
lint:
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >$(TARGET)/fuzz-metadata.json
	$(CARGO) fmt --check --manifest-path $(OWN)
	CARGO_TARGET_DIR=$(TARGET) $(CARGO) clippy --locked --all-targets --manifest-path $(OWN) -- -D warnings

# The API documentation builds without a broken link.
docs:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --workspace --no-deps --quiet

# Properties see the same random cases each time: a change is judged by what it changes.
# `make soak` looks for new ones, and explores the state machines further.
unit:
	PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED) $(CARGO) test --locked --workspace

# A scheme of another crate, and the program that has it. `make python` tests its module for Python.
own-scheme:
	CARGO_TARGET_DIR=$(TARGET) $(CARGO) test --locked --quiet --manifest-path $(OWN)

soak: swarm
	PROPTEST_CASES=$(SOAK_CASES) $(CARGO) test --locked --workspace --profile soak -- --include-ignored

# Random scenarios of every kind; what breaks an invariant is made smaller, and left in
# $(TARGET)/swarm/seed-*. SOAK_SECONDS=0 or SOAK_SEEDS=0 is no bound.
swarm:
	$(CARGO) run --locked --quiet -p xoff-swarm -- seeds $(SOAK_FROM) $(SOAK_SEEDS) $(SOAK_SECONDS) $(TARGET)/swarm

# The program as the tests of the workspace have it: another choice of packages would compile most crates again.
DEBUG_BUILD = $(CARGO) test --locked --quiet --workspace --test cli --no-run

# Debug and release builds, and repeats, give the same bytes.
same-bytes:
	$(DEBUG_BUILD)
	$(CARGO) build --locked --quiet --release --workspace --bin xoff
	tests/same_bytes.sh $(TARGET)

# The Python package as pip installs it: its stubs, pages, types and style, and what its users do with it,
# also in the notebooks.
python: wheel
	$(CARGO) build --locked --quiet --release --workspace --bin xoff
	$(VENV)/bin/pip install $(QUIET) --no-deps --force-reinstall $(TARGET)/wheels/xoff-*.whl
	$(call generated,$(TARGET)/stubs,$(TARGET)/PYTHON.md)
	cmp $(TARGET)/stubs/xoff/_xoff.pyi $(STUB) || { echo 'run: make python-reference'; exit 1; }
	cmp $(TARGET)/PYTHON.md docs/PYTHON.md || { echo 'run: make python-reference'; exit 1; }
	$(VENV)/bin/ruff check --quiet crates/py
	$(VENV)/bin/ruff format --quiet --check crates/py
	$(VENV)/bin/mypy --no-error-summary --cache-dir $(TARGET)/mypy
	rm -rf $(TARGET)/own-scheme
	cd $(dir $(OWN)) && CARGO_TARGET_DIR=$(TARGET) $(VENV)/bin/maturin build --quiet --profile dev --out $(TARGET)/own-scheme
	$(VENV)/bin/pip install $(QUIET) --no-deps --target $(TARGET)/own-scheme/python $(TARGET)/own-scheme/*.whl
	cd $(dir $(OWN)) && PYTHONPATH=$(TARGET)/own-scheme/python $(VENV)/bin/python tests/python.py
	XOFF=$(TARGET)/release/xoff $(VENV)/bin/pytest --quiet --no-header -p no:cacheprovider --numprocesses 2 --dist worksteal crates/py/tests

# The source distribution is complete: the compiler accepts it by itself, in a target of its own. Cargo would take crates
# of two trees in one target for the same. The wheel has what the release build of the whole workspace has.
wheel: $(VENV)/ready
	rm -rf $(TARGET)/wheels $(TARGET)/source
	$(VENV)/bin/maturin sdist --out $(TARGET)/wheels
	mkdir -p $(TARGET)/source
	tar xzmf $(TARGET)/wheels/xoff-*.tar.gz --strip-components=1 -C $(TARGET)/source
	cd $(TARGET)/source && CARGO_TARGET_DIR=$(TARGET)/published $(CARGO) check --locked --quiet --package xoff-py
	CARGO_TARGET_DIR=$(TARGET) $(VENV)/bin/maturin build --quiet --locked --strip --out $(TARGET)/wheels

STUB := crates/py/python/xoff/_xoff.pyi
# The stubs, and the page of the installed package.
generated = $(VENV)/bin/maturin generate-stubs --quiet --locked --profile release --features stubs --manifest-path crates/py/Cargo.toml --out $(1) \
	&& $(VENV)/bin/python tools/python_reference.py >$(2)

# docs/PYTHON.md from the docstrings of the package, which is installed first.
python-reference: wheel
	$(VENV)/bin/pip install $(QUIET) --no-deps --force-reinstall $(TARGET)/wheels/xoff-*.whl
	$(call generated,$(TARGET)/stubs,docs/PYTHON.md)
	cp $(TARGET)/stubs/xoff/_xoff.pyi $(STUB)

# A release would pass: the compiler accepts the crates as they would be published, each in its place in one workspace;
# wheel and source distribution.
PACKAGES := $(TARGET)/published/packages
release-check: wheel
	rm -rf $(PACKAGES) $(TARGET)/published/package
	$(CARGO) package --locked --quiet --no-verify --allow-dirty --workspace --exclude xoff-py --exclude xoff-swarm --target-dir $(TARGET)/published
	mkdir -p $(PACKAGES)
	for crate in $(TARGET)/published/package/*.crate; do tar xzmf $$crate -C $(PACKAGES); done
	cd $(PACKAGES) && { printf '[workspace]\nresolver = "3"\nmembers = ["*"]\n[patch.crates-io]\n'; \
		for crate in *-*; do echo "$${crate%-*}.path = \"$$crate\""; done; \
		sed -n '/^\[profile/,$$p' $(CURDIR)/Cargo.toml; } >Cargo.toml
	cp Cargo.lock $(PACKAGES)
	cd $(PACKAGES) && CARGO_TARGET_DIR=$(TARGET)/published $(CARGO) check --offline --quiet --workspace
	$(VENV)/bin/twine check --strict $(TARGET)/wheels/*

# A Slurm of one node makes a grid.
slurm:
	$(CARGO) build --locked --quiet --release --workspace --bin xoff
	$(PYTHON) tests/slurm.py $(TARGET)/release/xoff $(TARGET)/slurm

# pandas, Polars and DuckDB read the run directories that same-bytes has left, and do what the
# blocks of Python and SQL in the documentation say. xoff runs the scenario of tools/peers.py.
read-run: $(VENV)/ready
	$(VENV)/bin/python tests/read_run.py $(TARGET)/same-bytes/release/* $(TARGET)/same-bytes/grids/release-1
	$(VENV)/bin/python tests/snippets.py $(TARGET)/release/xoff $(TARGET)/snippets
	$(VENV)/bin/python tests/peers.py $(TARGET)/release/xoff

# tshark reads captures, with the dissector in wireshark/.
read-captures: $(VENV)/ready
	$(CARGO) build --locked --quiet --release --workspace --bin xoff
	$(VENV)/bin/python tests/read_capture.py $(TARGET)/release/xoff $(TARGET)/captures

QUIET := --quiet --disable-pip-version-check
$(VENV)/ready: tests/requirements.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install $(QUIET) --no-compile --requirement $<
	touch $@

# What xoff report embeds. It is committed, so that nothing else needs Node.js.
viewer: viewer/node_modules/ready
	cd viewer && npm run --silent check && npm run --silent build

# The committed bundle is what its source gives, byte by byte; its pages work in a browser, and their text is checked.
test-page: viewer/node_modules/ready tools/prose/node_modules/ready
	cd viewer && npm run --silent check && VIEWER_OUT=$(TARGET)/viewer npm run --silent build
	for file in viewer.js viewer.css NOTICE.txt; do \
		cmp $(TARGET)/viewer/$$file crates/results/src/report/$$file || { echo 'run: make viewer'; exit 1; }; done
	$(DEBUG_BUILD)
	cd viewer && XOFF=$(TARGET)/debug/xoff PAGES=$(TARGET)/viewer-pages node --test test/page.test.mjs
	node tools/prose/check.js $(TARGET)/viewer-pages/*.txt

viewer/node_modules/ready: viewer/package-lock.json viewer/.npmrc
	cd viewer && npm ci --ignore-scripts --loglevel=error
	touch $@

# docs/REFERENCE.md from the types that parse a scenario; a test says when it is not current.
reference:
	$(CARGO) run --locked --quiet --bin xoff -- schema --markdown >docs/REFERENCE.md

# With the mdBook that is installed, or else one of its own, which takes minutes to build once.
book: $(if $(shell command -v mdbook),,$(TARGET)/tools/bin/mdbook)
	PATH="$$PATH:$(TARGET)/tools/bin" mdbook build --dest-dir $(TARGET)/book

$(TARGET)/tools/bin/mdbook:
	$(CARGO) install --locked --version 0.5.4 --no-default-features --features search --root $(TARGET)/tools mdbook

bench:
	$(CARGO) bench --locked -p xoff-sim -p xoff-zeropod

# From the beginning, as results of an older build are no proof; after an
# interruption RESUME=--resume goes on. Status 3 says that packets of a lossless priority were
# lost: some experiments show just that. Tables of --sensitivity stay where the claims measure the same.
repro:
	$(if $(RESUME),,rm -rf $(TARGET)/repro)
	$(CARGO) run --locked --release --quiet --bin xoff -- repro $(PAPER) --beside experiments/results.json $(RESUME) --out $(TARGET)/repro || [ $$? -eq 3 ]
	cp $(TARGET)/repro/results.json experiments/results.json
	cp $(TARGET)/repro/REPRODUCTION.md docs/REPRODUCTION.md
	rm -rf docs/reproduction
	cp -R $(TARGET)/repro/reproduction docs/reproduction

# What takes long and belongs to no claim: pages and pictures stay in target.
repro-sweep:
	$(if $(RESUME),,rm -rf $(TARGET)/repro-sweep)
	$(CARGO) run --locked --release --quiet --bin xoff -- repro $(RESUME) --experiments sweeps --out $(TARGET)/repro-sweep

# A finding is left in $(TARGET)/fuzz/NAME-*, and make fails. Inputs that reached something new
# stay in $(TARGET)/fuzz/corpus.
fuzz: $(FUZZ:%=fuzz-%)

SEEDS_scenario := examples
SEEDS_experiments := $(wildcard experiments/*/)
SEEDS_cdf := crates/net/data crates/plan/tests/wrong/files
SEEDS_flows-csv := examples/hpcc crates/plan/tests/wrong/files
SEEDS_matrix-csv := crates/plan/tests/wrong/files
SEEDS_hpcc-topology := examples/hpcc crates/plan/tests/wrong/files
SEEDS_hpcc-flows := examples/hpcc crates/plan/tests/wrong/files
SEEDS_traces := examples/trace crates/plan/tests/wrong/files
LONGEST_manifests := 65536
LONGEST_parquet := 65536

fuzz-%: fuzz-build
	mkdir -p $(TARGET)/fuzz/corpus/$*
	XOFF_FUZZ_SEEDS=$(TARGET)/fuzz/corpus/$* $(TARGET)/fuzz/$(HOST)/release/$* $(TARGET)/fuzz/corpus/$* $(SEEDS_$*) \
		-max_total_time=$(FUZZ_SECONDS) -max_len=$(or $(LONGEST_$*),4096) -timeout=20 -verbosity=0 -print_funcs=0 \
		-print_final_stats=1 -artifact_prefix=$(TARGET)/fuzz/$*- 2>&1 \
		| sed '/^###### Recommended/,/^###### End/d; /^WARNING: Failed to find function/d'
	@echo 'make fuzz: $*: no finding in $(FUZZ_SECONDS) s'

fuzz-build:
	cd fuzz && RUSTFLAGS='$(COVERAGE)' $(CARGO) build --locked --release --target $(HOST) --target-dir $(TARGET)/fuzz \
		$(FUZZ:%=--bin %)

clean-fuzz:
	rm -rf $(TARGET)/fuzz

# Of the last commit. A folder that other code needs has its reason in the script.
rooms:
	CARGO_TARGET_DIR=$(TARGET)/rooms/target $(PYTHON) tests/rooms.py $(TARGET)/rooms

# Survivors must be argued in tests/mutants.toml. With RESUME=--resume only what is not caught yet is tried.
mutants: $(TARGET)/tools/bin/cargo-mutants
	$(PYTHON) tests/mutants.py $< $(TARGET)/mutants-run --mutants $(MUTANTS) $(RESUME)

$(TARGET)/tools/bin/cargo-mutants:
	$(CARGO) install --locked --version 27.1.0 --root $(TARGET)/tools cargo-mutants
