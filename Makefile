# Each command works from a bare clone: it creates .venv, installs, builds and runs; a second call
# reuses what is there. Needed before: Python 3.10-3.13 with its venv module, g++ and make.
#
#   make bench ARGS="--models vgg16"               ARGS go to the script, or to pytest
#   make test PYTHON=python3.12 VENV=.venv-3.12    another Python
#   make test CMAKE_ARGS=-DDNNL_ROOT=/opt/onednn   another oneDNN (to change it later: make clean)
#   make test-relax RELAX_VENV=.venv-0.25 APACHE_TVM="apache-tvm==0.25.0.post1 apache-tvm-ffi==0.1.12"

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: test test-relax bench lint format clean python-for-bench

PYTHON ?= $(shell for p in python3.11 python3; do $$p -c '' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# The two TVMs overwrite each other's files: each has an environment.
RELAX_VENV ?= .venv-relax
APACHE_TVM ?= apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.15.post2
ARGS ?=

# Where the libraries of an editable install are. Having no recipe, one that is missing makes
# whatever depends on it out of date.
LIBRARIES := $(patsubst %,tvm_dnnl_byoc/lib/libdnnl_byoc_%.so,engine relay relax)
# With the directories, so that a file that was removed counts as a change.
NATIVE := CMakeLists.txt setup.py $(shell find cmake src)
CXX_FILES = $(shell find src -name '*.h' -o -name '*.cc')

# TVM would try to download tuned schedules at every build.
export TOPHUB_LOCATION := NONE
# Given on the command line or in the environment; setup.py hands them to CMake.
export CMAKE_ARGS
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PIP_INSTALL = $(@D)/bin/python -m pip install --no-input --progress-bar off
QUIETLY = { grep --line-buffered -v -e '^Requirement already satisfied' -e '^  ' || true; }

# $(call requirements,<keys>): a list of requirements out of pyproject.toml, one a line.
requirements = $(@D)/bin/python -c "import importlib, sys; \
  toml = importlib.import_module('tomllib' if sys.version_info > (3, 11) else 'pip._vendor.tomli'); \
  print(*toml.load(open('pyproject.toml', 'rb'))$(1), sep='\n')"

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest tests/ $(ARGS)

# With the libraries that were built in $(VENV), which run under both TVMs.
test-relax: $(VENV)/.built $(RELAX_VENV)/.installed-relax
	$(RELAX_VENV)/bin/python -m pytest tests/ $(ARGS)

bench: python-for-bench $(VENV)/.installed-bench
	$(BIN)/python scripts/bench_gluoncv.py --mode latency $(ARGS)

lint: $(VENV)/.lint-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

format: $(VENV)/.lint-tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

%/.created:
	@echo "== Creating $(@D)"
	@test -n "$(PYTHON)" || { echo "Python 3.10-3.13 not found: install it, or pass PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; (3, 10) <= sys.version_info < (3, 14) or sys.exit( \
	  "expected Python 3.10-3.13, got " + sys.version.split()[0] + ": pass PYTHON=python3.11")'
	@$(PYTHON) -m venv $(@D)
	@touch $@

python-for-bench: $(VENV)/.created
	@$(BIN)/python -c 'import sys; sys.version_info < (3, 12) or sys.exit( \
	  "the benchmark compares with MXNet, which needs Python 3.10 or 3.11; $(VENV) has " \
	  + sys.version.split()[0] + ": make bench PYTHON=python3.11 VENV=.venv-3.11")'

# The build requirements go into $(VENV) itself: without pip's build isolation, a change of one C++
# file compiles only that file.
$(VENV)/.build-tools: $(VENV)/.created pyproject.toml constraints.txt
	@echo "== Installing the build requirements into $(VENV)"
	@$(call requirements,['build-system']['requires']) \
	  | $(PIP_INSTALL) -c constraints.txt -r /dev/stdin | $(QUIETLY)
	@touch $@

$(VENV)/.installed-%: $(VENV)/.build-tools $(NATIVE) $(LIBRARIES)
	@echo "== Building the native libraries and installing tvm_dnnl_byoc[$*] into $(VENV)"
	@$(PIP_INSTALL) -c constraints.txt --no-build-isolation -e '.[$*]' | $(QUIETLY)
	@touch $@ $(VENV)/.built

$(VENV)/.built: $(VENV)/.build-tools $(NATIVE) $(LIBRARIES)
	@echo "== Building the native libraries"
	@$(PIP_INSTALL) --no-build-isolation --no-deps -e . | $(QUIETLY)
	@touch $@

# What the package itself and its extra test-relax require, but not the package.
$(RELAX_VENV)/.installed-relax: $(RELAX_VENV)/.created pyproject.toml constraints-relax.txt
	@echo "== Installing $(APACHE_TVM) and the requirements of the tests into $(RELAX_VENV)"
	@{ $(call requirements,['project']['dependencies']); \
	   $(call requirements,['project']['optional-dependencies']['test-relax']); } \
	  | grep -v '^tvm_dnnl_byoc' \
	  | $(PIP_INSTALL) -c constraints-relax.txt -r /dev/stdin $(APACHE_TVM) | $(QUIETLY)
	@touch $@

$(VENV)/.lint-tools: $(VENV)/.created pyproject.toml constraints.txt
	@echo "== Installing the linters into $(VENV)"
	@$(call requirements,['project']['optional-dependencies']['lint']) \
	  | $(PIP_INSTALL) -c constraints.txt -r /dev/stdin | $(QUIETLY)
	@touch $@

clean:
	rm -rf build tvm_dnnl_byoc/lib

$(LIBRARIES):
