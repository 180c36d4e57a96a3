# Two commands need nothing but Python 3.11 or newer, pip and make:  make demo  ·  make test
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq --no-input
# Everything is pinned; the package is installed as its users install it, not as a link to this checkout.
INSTALL := $(PIP) install --constraint constraints.txt --no-build-isolation
PACKAGES := src graph kernels lists rewrite train
SOURCES := $(shell find $(PACKAGES) -name __pycache__ -prune -o -print)
# Further options of pytest, such as ARGS="-k parity".
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint format types package nightly bench clean

help:  ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.package  ## Rewrite a small ONNX model to float16 and say why
	@mkdir -p out
	$(BIN)/ampgraph demo -o out/demo.onnx
	@echo && echo "The same with any model:"
	$(BIN)/ampgraph rewrite out/demo.onnx -o out/demo.fp16.onnx --report out/demo.json
	@echo && echo "The model, the rewritten one, and the reason for every node as JSON:" && ls -l out/demo*

test: $(VENV)/.test  ## Run the doctests and the tests, then list the groups that were not run, and why
	$(BIN)/python -m pytest -q --doctest-modules --pyargs ampgraph tests $(ARGS)

lint: $(VENV)/.dev  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## Check types
	$(BIN)/mypy --strict -p ampgraph
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.dev  ## Format the code and sort its imports
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .

# The wheel is built from the sdist, checked, and run outside of the checkout with the oldest dependencies allowed. Those have
# no wheels for Python 3.13 and newer, where the pinned ones are taken instead.
OLDEST = $(shell $(PYTHON) -c 'import sys; print("constraints-oldest.txt" if sys.version_info < (3, 13) else "constraints.txt")')
package: $(VENV)/.dev  ## Build the sdist and the wheel, check them, install and run the wheel
	rm -rf build dist
	$(BIN)/python -m build --quiet --no-isolation .
	$(BIN)/check-wheel-contents dist/*.whl
	rm -rf $(VENV)/oldest && $(call make-venv,$(VENV)/oldest)
	$(VENV)/oldest/bin/python -m pip -qq --no-input install --constraint $(OLDEST) dist/*.whl
	cd $(VENV)/oldest && bin/ampgraph rewrite $(CURDIR)/examples/resnet50_train.pb.gz -o resnet50_train.fp16.pb > /dev/null
	cd $(VENV)/oldest && bin/ampgraph demo -o demo.onnx > /dev/null && bin/ampgraph rewrite demo.onnx -o demo.fp16.onnx > /dev/null
	@ls -l dist $(VENV)/oldest/resnet50_train.fp16.pb $(VENV)/oldest/demo.fp16.onnx

nightly: $(VENV)/.test  ## Test at length: more random graphs, all backend models of ONNX, a 3 GB model, every golden of AMPGRAPH_GOLDENS
	$(BIN)/python -m pytest -q --more-examples=50 $(ARGS)

bench: $(VENV)/.package  ## Time the rewrite
	$(BIN)/python -m bench rewrite

clean:  ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist out *.egg-info src/*.egg-info

# Without ensurepip, which some systems leave out: pip installs itself into the new environment.
make-venv = $(PYTHON) -m venv --without-pip $(1) && $(PYTHON) -m pip --disable-pip-version-check -qq --no-input \
	--python $(1)/bin/python install --constraint constraints.txt pip setuptools

$(VENV)/.environment: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("ampgraph needs Python 3.11 or newer, $(PYTHON) is " \
	    + sys.version.split()[0] + ": make PYTHON=python3.12 …" if sys.version_info < (3, 11) else 0)'
	@echo "Creating $(VENV) and installing ampgraph with its dependencies: a minute or so."
	@rm -rf $(VENV)
	@$(call make-venv,$(VENV))
	@touch $@

# build/ is removed because setuptools would put files that no longer exist into the package.
$(VENV)/.package: $(VENV)/.environment pyproject.toml README.md $(SOURCES)
	@rm -rf build
	@$(INSTALL) --force-reinstall --no-deps . && $(INSTALL) .
	@rm -rf build
	@touch $@

$(VENV)/.test: $(VENV)/.package
	@$(INSTALL) --group test
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	@$(INSTALL) --group dev
	@touch $@
