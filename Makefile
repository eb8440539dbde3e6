# Every target does its own set-up; a fresh machine needs Python (3.10 to 3.13) and make only.
#
#   make demo       migrate two legacy training scripts and train them beside their recorded traces
#   make test       lint, types, tests, doctests, documentation, wheel and sdist
#   make test-long  the property tests at full size, thousands of programs
#   make clients    trains with the code of real packages, on TensorFlow's classes and on ours
#   make gpu        what only a GPU shows, as one table; says so where there is none
#   make bench      ours beside the originals; results in out/benchmarks
#   make programs   write the random programs anew after a rule changed, and record the originals
#   make rules      regenerate the pages of the rules after one has changed
#   make docs       the documentation site, in site/
#   make clean      remove what the targets made

PYTHON ?= python3
# The build without CUDA is a third of the download; macOS has one build only.
TENSORFLOW ?= $(if $(filter Darwin,$(shell uname -s)),tensorflow,tensorflow-cpu)==2.21.*
TF_KERAS ?= tf-keras==2.21.*

export PIP_DISABLE_PIP_VERSION_CHECK = 1
export TF_CPP_MIN_LOG_LEVEL = 3

# NVIDIA's libraries are gigabytes: only where there is such a GPU.
GPU_TENSORFLOW ?= $(if $(shell command -v nvidia-smi),tensorflow[and-cuda]==2.21.*,$(TENSORFLOW))

DEMO = .venv-demo
TEST = .venv-test
GPU = .venv-gpu

.PHONY: programs rules demo test test-long lint types unit doctest docs package clients gpu bench clean

demo: $(DEMO)/.ready
	$(DEMO)/bin/pip install --quiet --no-deps --force-reinstall .
	$(DEMO)/bin/python examples/demo.py

test: lint types unit doctest docs package
	@echo "make test: all passed"

lint: $(TEST)/.ready
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .

types: $(TEST)/.ready
	$(TEST)/bin/mypy

unit: $(TEST)/.ready
	$(TEST)/bin/python -m pytest -n 2 tests

test-long: $(TEST)/.ready
	TFLS_TEST_SIZE=long $(TEST)/bin/python -m pytest -n 2 tests

# `sitecustomize` is run when Python starts; it is not a module to import by its path.
doctest: $(TEST)/.ready
	$(TEST)/bin/python -m pytest --doctest-modules -q tf_lossscale \
	  --ignore tf_lossscale/_child/sitecustomize.py
	$(TEST)/bin/python -m pytest --doctest-modules -q codemods
	$(TEST)/bin/python -m doctest README.md

rules: $(TEST)/.ready
	$(TEST)/bin/python -m tf_lossscale_codemods.cli.rule_pages docs/rules

docs: $(TEST)/.ready
	$(TEST)/bin/python docs/generate.py
	$(TEST)/bin/mkdocs build --quiet --strict

package: $(TEST)/.ready
	rm -rf out/dist
	$(TEST)/bin/python -m build --outdir out/dist .
	$(TEST)/bin/python tests/package/smoke.py out/dist

# Recording runs the originals, so it needs Python 3.7 and 3.8; only a changed grammar needs it.
programs: $(TEST)/.ready
	PYTHONPATH=tests/codemods $(TEST)/bin/python -m execution $(PROGRAMS)
	for each in tf1.15-py37 tf2.3-py38 tf2.4-py38; do \
	  tox exec -e $$each -- python tests/shim/programs/record.py || exit 1; done

# Python 3.7 and 3.11, cmake and a C++ compiler: Horovod is built from its sources, in some minutes.
clients:
	$(PYTHON) tests/clients

gpu: $(GPU)/.ready
	@$(GPU)/bin/python -W ignore tests/gpu

bench: $(TEST)/.ready
	$(TEST)/bin/python benchmarks

# A virtual environment is ready when its marker is newer than what it was made from.
$(DEMO)/.ready: setup.cfg setup.py pyproject.toml
	$(call environment,$(DEMO))
	$(DEMO)/bin/pip install --quiet absl-py libcst "$(TENSORFLOW)" "$(TF_KERAS)"
	touch $@

$(TEST)/.ready: setup.cfg setup.py pyproject.toml
	$(call environment,$(TEST))
	$(TEST)/bin/pip install --quiet --editable ".[test,docs,lint]" "$(TENSORFLOW)" "$(TF_KERAS)"
	touch $@

$(GPU)/.ready: setup.cfg setup.py pyproject.toml
	$(call environment,$(GPU))
	$(GPU)/bin/pip install --quiet absl-py "$(GPU_TENSORFLOW)" "$(TF_KERAS)"
	touch $@

define environment
	@$(PYTHON) -c 'import sys; (3, 10) <= sys.version_info[:2] <= (3, 13) or sys.exit( \
	  "TensorFlow 2.21 needs Python 3.10 to 3.13; %s is %d.%d. Name another: make PYTHON=python3.12" \
	  % ((sys.executable,) + sys.version_info[:2]))'
	$(PYTHON) -m venv --clear $(1)
	$(1)/bin/pip install --quiet --upgrade pip
endef

clean:
	rm -rf $(DEMO) $(TEST) $(GPU) .tox build dist out site *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
