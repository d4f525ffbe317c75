# Everything a person runs. The work is done by tests/harness (Python's standard library); tools go to .tools/.
PYTHON ?= python3
HARNESS = @command -v $(PYTHON) >/dev/null || { echo "python3 is missing: install Python 3.10 or newer"; exit 1; }; \
	PYTHONPATH=tests $(PYTHON) -m harness

GROUPS := rust python node go c scenarios snippets packaging faults smoke

.DEFAULT_GOAL := help
.PHONY: help test soak build lint demo servers steps step clean $(GROUPS:%=test-%)

help: ## show this list
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'
	@echo "  make test-X       one group: $(GROUPS)"

test: ## build and check everything; ends with `N passed, N failed`
	$(HARNESS) test

soak: ## the same with the literal sizes of the long tests (hours)
	@$(MAKE) --no-print-directory test DRAYHORSE_SCALE=100

build: ## install the tools and build every artefact
	$(HARNESS) build

lint: ## formatters, linters, type checkers and checks of the tree
	$(HARNESS) test lint

$(GROUPS:%=test-%): test-%:
	$(HARNESS) test $*

step: ## single steps, NAME="clippy mypy"
	$(HARNESS) test $(NAME)

steps: ## list the steps
	$(HARNESS) steps

demo: ## 600 jobs from three languages through an outage and a killed worker
	$(HARNESS) demo

servers: ## start the test databases, print their URLs, stop at Ctrl-C
	$(HARNESS) servers

clean: ## remove everything that was built or installed here
	rm -rf .tools target .drayhorse bindings-node/node_modules bindings-node/dist bindings-node/native
	rm -rf bindings-python/dist go/internal/clib/*/libdrayhorse.a
	find bindings-python tests examples -name __pycache__ -prune -exec rm -rf {} +
	rm -f bindings-python/python/drayhorse/_native*.so
