# Every target sets itself up; the only requirements are Python (3.10 to 3.13) and make.
#
#   make demo       migrate two legacy training scripts and check that they train like the originals
#   make check      lint, types, and the tests of the folders that differ from main, without TensorFlow
#   make format     format the code, and fix what ruff can fix
#   make test       lint, types, tests, doctests, documentation, wheel and sdist
#   make test-long  the property tests at full size
#   make guides     follow the guides of the documentation from start to end, in new environments
#   make clients    train with real packages, with TensorFlow's classes and with the shim
#   make versions   the core of the shim's tests on every TensorFlow and Keras; prints a table
#   make gpu        the checks that need a GPU, as one table; says so if there is no GPU
#   make defects    apply deliberate defects one by one and check that a test fails for each
#   make bench      compare the shim with the originals; results in out/benchmarks
#   make programs   migrate the programs of tests/data/programs again, after a rule has changed
#   make rules      regenerate the pages of the rules after one has changed
#   make docs       build the documentation site in site/
#   make clean      remove everything that the targets created

PYTHON ?= python3
# The build without CUDA is a third of the download. On macOS there is only one build.
TENSORFLOW ?= $(if $(filter Darwin,$(shell uname -s)),tensorflow,tensorflow-cpu)==2.21.*
# Installed without its dependency, `tensorflow`, which is the build with CUDA.
TF_KERAS ?= tf-keras==2.21.*

export PIP_DISABLE_PIP_VERSION_CHECK = 1
export TF_CPP_MIN_LOG_LEVEL = 3
export NO_MKDOCS_2_WARNING = 1
# Without compiled modules, each of the many processes of the tests compiles what it imports. Container
# images often turn them off.
unexport PYTHONDONTWRITEBYTECODE

# NVIDIA's libraries take gigabytes: install them only if there is an NVIDIA GPU.
GPU_TENSORFLOW ?= $(if $(shell command -v nvidia-smi),tensorflow[and-cuda]==2.21.*,$(TENSORFLOW))

# The tests of a file run in one process, so that what they share is made once. The order of the files
# is that of tests/conftest.py.
PARALLEL = --dist loadfile --no-loadscope-reorder

# The codemods fork for each run of the command, which takes five times longer in a process that has
# trained with TensorFlow before, so that their tests have processes of their own: twice as many as
# cores, as they wait for the processes of the command.
CODEMODS = $(PARALLEL) -n 4 tests/codemods
OTHERS = $(PARALLEL) -n 2 tests --ignore tests/codemods

# Who adds a test sees what it costs.
SLOWEST = --durations 15 --durations-min 2

DEMO = .venv-demo
TEST = .venv-test
GPU = .venv-gpu

.PHONY: programs rules demo check format test test-long lint types unit doctest docs package guides clients versions gpu defects bench clean

demo: $(DEMO)/.ready
	$(DEMO)/bin/pip install --quiet --no-deps --force-reinstall .
	$(DEMO)/bin/python examples/demo.py

# BASE is what the change is compared with.
check: lint types
	$(TEST)/bin/python tests/changed.py $(or $(BASE),main)

# The tests keep two cores busy, each of the rest one. The first two need no TensorFlow, and run while
# it is installed.
test: $(TEST)/.tools
	$(MAKE) --no-print-directory --jobs 2 $(TEST)/.ready package lint types doctest docs
	$(MAKE) --no-print-directory unit
	@echo "make test: all passed"

format: $(TEST)/.ready
	$(TEST)/bin/ruff check --fix .
	$(TEST)/bin/ruff format .

lint: $(TEST)/.tools
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .
	$(TEST)/bin/complexipy tf_lossscale codemods --max-complexity-allowed 15 --failed
	$(TEST)/bin/python tests/defects --check

types: $(TEST)/.ready
	$(TEST)/bin/mypy

unit: $(TEST)/.ready
	$(TEST)/bin/python -m pytest $(SLOWEST) -m "not slow" $(CODEMODS)
	$(TEST)/bin/python -m pytest $(SLOWEST) -m "not slow" $(OTHERS)

test-long: export TFLS_TEST_SIZE = long
test-long: $(TEST)/.ready
	$(TEST)/bin/python -m pytest $(SLOWEST) $(CODEMODS)
	$(TEST)/bin/python -m pytest $(SLOWEST) $(OTHERS)

# Python runs `sitecustomize` when it starts; it cannot be imported by its path.
doctest: $(TEST)/.ready
	$(TEST)/bin/python -m pytest --doctest-modules -q tf_lossscale \
	  --ignore tf_lossscale/_cli/child/sitecustomize.py
	$(TEST)/bin/python -m pytest --doctest-modules -q codemods

rules: $(TEST)/.ready
	$(TEST)/bin/python docs/rule_pages.py docs/rules

docs: $(TEST)/.ready
	$(TEST)/bin/mkdocs build --quiet --strict

# Built twice, as the same source must give the same bytes.
package: export SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),315532800)
package: $(TEST)/.tools
	rm -rf out/dist out/again
	$(TEST)/bin/python -m build --outdir out/dist .
	$(TEST)/bin/python -m build --outdir out/again . >/dev/null
	diff -r out/dist out/again
	$(TEST)/bin/twine check --strict out/dist/*
	$(TEST)/bin/python tests/package/smoke.py out/dist

programs: $(TEST)/.ready
	PYTHONPATH=tests/codemods:tests/shim $(TEST)/bin/python -m execution

# Needs Python 3.7, 3.8, 3.9 and 3.12, and downloads four versions of TensorFlow.
guides: $(TEST)/.ready
	rm -rf out/guides
	$(TEST)/bin/python -m build --wheel --outdir out/guides .
	$(TEST)/bin/python tests/guides out/guides

# Needs Python 3.7 and 3.11, cmake and a C++ compiler: building Horovod takes a few minutes.
clients:
	$(PYTHON) tests/clients

# Needs Pythons 3.7 to 3.13, and downloads 23 versions of TensorFlow (25 GB on disk).
versions:
	$(PYTHON) tests/versions

gpu: $(GPU)/.ready
	@$(GPU)/bin/python -W ignore tests/gpu

# With ONLY, those whose file or text has one of its words.
defects: $(TEST)/.ready
	$(TEST)/bin/python tests/defects $(ONLY)

bench: $(TEST)/.ready
	$(TEST)/bin/python benchmarks

# A virtual environment is ready if its marker is newer than the files that define it.
$(DEMO)/.ready: setup.cfg setup.py pyproject.toml
	@echo "The first run of the demo downloads about 350 MB, mostly TensorFlow, into $(DEMO) (1.6 GB on disk)."
	@echo "That takes 1 to 5 minutes. Training the two examples then takes about a minute."
	$(call environment,$(DEMO))
	.ci/retry $(DEMO)/bin/pip install absl-py libcst "$(TENSORFLOW)"
	touch $@

$(TEST)/.tools: setup.cfg setup.py pyproject.toml
	$(call environment,$(TEST))
	.ci/retry $(TEST)/bin/pip install --quiet --editable ".[test,docs,lint]"
	touch $@

$(TEST)/.ready: $(TEST)/.tools
	.ci/retry $(TEST)/bin/pip install --quiet "$(TENSORFLOW)"
	.ci/retry $(TEST)/bin/pip install --quiet --no-deps "$(TF_KERAS)"
	touch $@

$(GPU)/.ready: setup.cfg setup.py pyproject.toml
	$(call environment,$(GPU))
	.ci/retry $(GPU)/bin/pip install --quiet absl-py "$(GPU_TENSORFLOW)"
	.ci/retry $(GPU)/bin/pip install --quiet --no-deps "$(TF_KERAS)"
	touch $@

define environment
	@$(PYTHON) -c 'import sys; (3, 10) <= sys.version_info[:2] <= (3, 13) or sys.exit( \
	  "TensorFlow 2.21 needs Python 3.10 to 3.13; %s is %d.%d. Choose another: make PYTHON=python3.12" \
	  % ((sys.executable,) + sys.version_info[:2]))'
	$(PYTHON) -m venv --clear $(1)
	.ci/retry $(1)/bin/pip install --quiet --upgrade pip
endef

clean:
	rm -rf $(DEMO) $(TEST) $(GPU) .venv-tox .tox .versions build dist out site *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
