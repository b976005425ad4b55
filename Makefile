# `make demo`, `make demo-train` and `make test` do all the set-up themselves, in a virtual environment of their own.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# uv installs what pip takes minutes for. It does not read pip's configuration, and is told of it here.
UV := $(BIN)/uv
PIP := $(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt
PIP_SAYS := $(shell $(PYTHON) -m pip config list 2> /dev/null | sed -nE "s/^[^=]*[.]([a-z-]+)='(.*)'$$/\1=\2/p" | sed 's/\\n\| /,/g')
pip_says = $(sort $(patsubst $(1)=%,%,$(filter $(1)=%,$(PIP_SAYS))))
comma := ,
export UV_FIND_LINKS ?= $(subst $() ,$(comma),$(call pip_says,find-links))
export UV_CONSTRAINT ?= $(subst $(comma), ,$(call pip_says,constraint))
export UV_DEFAULT_INDEX ?= $(or $(call pip_says,index-url),https://pypi.org/simple)
# Of one version uv takes the wheel of the first index that has any, where pip compares all: the whole index comes first.
export UV_INDEX ?= $(UV_DEFAULT_INDEX) $(subst $(comma), ,$(call pip_says,extra-index-url))
export UV_INDEX_STRATEGY ?= unsafe-best-match
unexport PYTHONDONTWRITEBYTECODE
# One thread a process: processes that share cores and synchronise their threads wait for each other.
# Tests move from one process to another that has none left, in the middle of a file too.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist worksteal
# The package as users install it, and the developers' requirements.
PACKAGE := $(VENV)/.package
READY := $(VENV)/.ready
NEXT := build/lm-eval-next
LM_EVAL_NEXT := 0.5.0.dev1
# The Spaces' `sdk_version`.
GRADIO := 6.31.0
AXE := 4.14.1
AXE_SCRIPT := build/axe/node_modules/axe-core/axe.min.js
# The hosts of docs/integrations.md.
INTEGRATIONS := inspect-ai==0.3.285 mlflow==3.17.2 deepeval==4.3.1 opentelemetry-sdk==1.45.2 langfuse==5.0.4 \
	arize-phoenix-client==3.5.0
INSTALLED = OMP_NUM_THREADS=1 build/installed/venv/bin/python
INSTALL = $(UV) pip install --quiet --python build/installed/venv/bin/python --constraint constraints.txt
# Some tests of the source distribution that read every kind of file that it has to contain; the slow ones read no other.
SDIST_TESTS = tests/test_package.py tests/core/test_files.py tests/core/test_signature.py tests/corpora/test_mini.py \
	tests/corpora/test_registry.py tests/cli/test_help.py tests/leaderboard/test_lm_eval_files.py tests/hosts/test_validation.py

# The time in archives: two builds of a commit are equal.
export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 1700000000)

.PHONY: help demo demo-train models test test-all lint types bytecode tests all-tests budgets exhaustive docs spaces axe integrations lm-eval-next real-data wheels \
	light installed release-check matrix slice mutants bench clean

# This list.
help:
	@awk '/^# /{if (!said) said = substr($$0, 3)} /^[a-z][a-z-]*:/{split($$0, target, ":"); printf "%-13s %s\n", target[1], said} \
		!/^# /{said = ""}' Makefile

# Sets up .venv with what users install, and runs the demo.
demo: $(PACKAGE)
	$(BIN)/dialeval demo

# The same with small models that are trained on the spot; some minutes on two cores.
demo-train: $(PACKAGE)
	$(BIN)/dialeval demo --train

# Trains the bundled models again, from the public data in DIALEVAL_DATA_DIR: some three hours and a half of one core.
models: $(READY)
	$(BIN)/python -m reproduction.pretrained.build $(MODEL)

# Linters, types, and the tests that need no data: some five minutes on two cores.
# mypy takes one of them for half a minute, in which the other would have nothing to do.
test: $(READY)
	$(MAKE) --jobs 2 lint bytecode
	$(MAKE) --jobs 2 types tests

# ruff, codespell, and the check of the documents' prose.
lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/python -m tests.prose

# mypy.
types: $(READY)
	$(BIN)/mypy

# Byte code of what most tests import, once: each of their processes would compile it at the same time.
bytecode: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -c 'import importlib, tests.forked; [*map(importlib.import_module, tests.forked.PRELOADED)]'

# The tests of `make test` alone.
tests: $(READY)
	$(PYTEST) -m "not real_data and not exhaustive and not long and not slow" --doctest-modules tests dialeval_plugin

# The same with the tests marked `long` or `slow`, those on the public data in DIALEVAL_DATA_DIR, and the documentation.
test-all: lint types docs all-tests

# The tests of `make test-all` alone.
all-tests: $(READY)
	$(PYTEST) -m "not exhaustive" --doctest-modules tests dialeval_plugin

# Measures the processor time of each test again, after which a test may take tenfold of it.
budgets: $(READY)
	DIALEVAL_WRITE_BUDGETS=1 $(MAKE) all-tests

# The tests marked `exhaustive`: what a default run does a few times is repeated, and simulations are as long as their claims need;
# and where DIALEVAL_DATA_DIR is set, figures of the bundled models are computed again, as they must be after a change of a model.
exhaustive: $(READY)
	$(PYTEST) -m exhaustive tests

# The documentation site in build/site: offline, and no link in it is dead.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# The page of a Space, started for real and looked at in a browser.
# gradio wants an older pillow than the plots' package: it has an environment of its own, which sees the packages of the other.
spaces: build/spaces/.ready
	DIALEVAL_GRADIO_PYTHON=build/spaces/bin/python OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -k space tests/hosts/test_conversation_page.py

build/spaces/.ready: $(READY)
	$(UV) venv --quiet --clear --python $(PYTHON) build/spaces
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $$(echo build/spaces/lib/python3*/site-packages)/shared.pth
	$(UV) pip install --quiet --python build/spaces/bin/python --constraint constraints.txt gradio==$(GRADIO)
	touch $@

# The pages of passports, leaderboards, scores and labelling, checked by axe-core (MPL-2.0), which npm installs.
axe: $(AXE_SCRIPT)
	DIALEVAL_AXE=$(AXE_SCRIPT) $(PYTEST) -k axe tests/leaderboard tests/pages tests/passport

$(AXE_SCRIPT): $(READY)
	npm install --silent --no-save --prefix build/axe axe-core@$(AXE)
	touch $@

# The adapters with the real package of each host.
# Each host is installed together with the package, as its users do, in an environment of its own: their pins conflict.
integrations: $(READY)
	mkdir -p build/integrations
	grep "^torch==" constraints.txt > build/integrations/torch.txt
	for host in $(INTEGRATIONS); do \
	  venv=build/integrations/$${host%%==*} && $(UV) venv --quiet --clear --python $(PYTHON) $$venv && \
	  $(UV) pip install --quiet --python $$venv/bin/python --constraint build/integrations/torch.txt \
	    --editable . pytest pytest-socket pytest-timeout hypothesis $$host && $(UV) pip check --python $$venv/bin/python && \
	  OMP_NUM_THREADS=1 $$venv/bin/python -m pytest -q -k $${host%%==*} tests/integrations || exit 1; \
	done

# The tests of the tasks and judges, also those marked `long`, with the next lm-eval.
# It has an environment of its own, which sees the packages of the other. A second process would import for 20 s, and the test of
# `dialeval enable` starts the host from nothing.
lm-eval-next: $(NEXT)/.ready
	DIALEVAL_FROM_NOTHING=0 OMP_NUM_THREADS=1 $(NEXT)/bin/python -m pytest -q \
		-m "not real_data and not exhaustive and not any_lm_eval" --ignore-glob 'tests/hosts/test_evaluate_*' \
		--ignore tests/hosts/test_conversation_page.py tests/hosts tests/leaderboard/test_lm_eval_files.py

$(NEXT)/.ready: $(READY)
	$(UV) venv --quiet --clear --python $(PYTHON) $(NEXT)
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir({!r})".format(sysconfig.get_path("purelib")))' \
		> $$(echo $(NEXT)/lib/python3*/site-packages)/zz_shared.pth
	$(UV) pip install --quiet --python $(NEXT)/bin/python --no-deps lm-eval==$(LM_EVAL_NEXT)
	touch $@

# The tests on public data; DIALEVAL_DATA_DIR is a folder with the corpora (dialeval data list).
real-data: $(READY)
	$(PYTEST) -m "real_data and not exhaustive" $$(grep -rl --include='test_*.py' real_data tests)

# All that is published: source distribution and wheel of dialeval-plugin, wheel of dialeval-core.
# The latter is made from that source, so that the checkout does not look as if both were installed.
wheels: $(READY)
	rm -rf build/dist
	$(UV) build --quiet --python $(BIN)/python --out-dir build/dist .
	tar -xzf build/dist/*.tar.gz --strip-components 1 --one-top-level=build/dist/source
	DIALEVAL_DISTRIBUTION=core $(UV) build --quiet --python $(BIN)/python --wheel --out-dir build/dist build/dist/source
	rm -r build/dist/source

# The light installation, dialeval-core: every command that it promises.
light: wheels
	$(UV) venv --quiet --clear --python $(PYTHON) build/light
	$(UV) pip install --quiet --python build/light/bin/python --constraint constraints.txt build/dist/dialeval_core-*.whl
	$(BIN)/python tests/bytecode.py build/light
	OMP_NUM_THREADS=1 build/light/bin/python tests/light.py --forked

# The package as users install it: every scorer, metric and command from the wheel, and the source distribution's own tests.
# The latter see the developers' packages of .venv; the wheel is tried before, where nothing hides what it lacks.
installed: wheels
	rm -rf build/installed
	$(UV) venv --quiet --python $(PYTHON) build/installed/venv
	$(INSTALL) build/dist/dialeval_plugin-*.whl
	$(BIN)/python tests/bytecode.py build/installed/venv
	$(INSTALLED) tests/smoke.py --forked
	tar -xzf build/dist/*.tar.gz --strip-components 1 --one-top-level=build/installed/source
	$(INSTALL) --reinstall --no-deps build/dist/*.tar.gz
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> $$(echo build/installed/venv/lib/python3*/site-packages)/zz_shared.pth
	cd build/installed/source && OMP_NUM_THREADS=1 ../venv/bin/python -m pytest -q -m "not real_data and not slow" $(SDIST_TESTS)

# All that has to hold before a version is published.
# The files are in build/dist, a bill of what they install is in build/installed.
release-check: test-all light installed
	$(UV) venv --quiet --clear --python $(PYTHON) build/release
	$(UV) pip install --quiet --python build/release/bin/python --constraint constraints.txt twine cyclonedx-bom
	build/release/bin/twine check --strict build/dist/*.whl build/dist/*.tar.gz
	rm -rf build/release/clone build/release/again
	git clone --quiet . build/release/clone
	$(UV) build --quiet --python $(BIN)/python --wheel --out-dir build/release/again build/release/clone
	DIALEVAL_DISTRIBUTION=core $(UV) build --quiet --python $(BIN)/python --wheel --out-dir build/release/again build/release/clone
	for wheel in build/dist/*.whl; do cmp $$wheel build/release/again/$$(basename $$wheel) || exit 1; done
	build/release/bin/cyclonedx-py environment --output-file build/installed/sbom.json build/installed/venv/bin/python
	! grep -n "(unreleased)" CHANGELOG.md
	grep -q "^version: $$(build/installed/venv/bin/dialeval --version | cut -d ' ' -f 2)$$" CITATION.cff

# Installs the wheels with other Pythons and other versions of their requirements, and writes the table of docs/install.md.
# ENVIRONMENTS="light-3.12-newest" for some of them, "--resolve" only for what pip would take. Where builds of torch for CUDA are not
# wanted: "--torch 2.13.0+cpu" with PIP_FIND_LINKS, or UV_TORCH_BACKEND=cpu.
matrix: wheels
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/matrix.py $(ENVIRONMENTS)

# A slice of it: what pip would take on the first and the last Python, and the lowest versions that are allowed.
slice: wheels
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/matrix.py --resolve full-3.10-newest full-3.14-newest full-3.11-lowest
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/matrix.py --no-smoke --no-tests light-3.11-lowest

# Changes modules in one place at a time and counts what their tests notice; MODULE=methods/slide/fusion.py for one.
mutants: $(READY)
	$(PIP) mutmut
	$(BIN)/python tests/mutants.py $(MODULE)

# Times the small model of SLIDE.
bench: $(READY)
	$(BIN)/python benchmarks/slm.py

$(PACKAGE): setup.cfg setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	PIP_COMPILE=0 $(BIN)/pip install --quiet --constraint constraints.txt uv
	$(PIP) pip --editable .
	touch $@

$(READY): $(PACKAGE)
	$(PIP) --editable '.[dev]'
	# The validator that tests run over exports. Its package asks for Python 3.12 and for much that the validator does not import.
	$(PIP) --no-deps --python-version 3.12 --target build/every_eval_ever every-eval-ever==0.3.0
	touch $@

# Removes what is built and installed here.
clean:
	rm -rf $(VENV) build dist *.egg-info demo_output mutants
