# Every target sets up what it needs; `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
UV_VERSION := 0.13.9
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
RUN := $(VENV)/bin/python
PYTEST := $(RUN) -m pytest
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/$(VENV)
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  \033[1m%-18s\033[0m %s\n", $$1, $$2}'

$(VENV)/.ready: pyproject.toml uv.lock
	@test -n "$(PYTHON)" || { echo "Landbridge needs Python 3.11 or newer; none was found. Install one or run: make PYTHON=/path/to/python3 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV) || { echo "Could not make a virtual environment with $(PYTHON). On Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(RUN) -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"
	@$(VENV)/bin/uv sync --quiet --frozen --all-extras --all-groups
	@touch $@

.PHONY: setup
setup: $(VENV)/.ready ## Make .venv with everything needed to run and to develop

.PHONY: demo
demo: setup ## Two environments, real operations, the dashboard (ONCE=1 ends by itself)
	@$(RUN) -m landbridge_embedded.demo $(if $(ONCE),--once)

.PHONY: up
up: setup ## Start Landbridge on this machine until Ctrl-C
	@$(VENV)/bin/landbridge up

.PHONY: format
format: setup ## Format and fix what can be fixed
	@$(RUN) -m ruff check --fix --quiet . ; $(RUN) -m ruff format --quiet .

.PHONY: schema
schema: setup ## Write models, JSON Schema, reference pages and AsyncAPI anew from proto/
	@$(RUN) tools/generate_schema.py
	@$(RUN) tools/generate_asyncapi.py
	@$(RUN) tools/generate_cli_reference.py
	@$(RUN) tools/generate_reasons.py
	@$(RUN) tools/generate_kubernetes_states.py
	@$(RUN) tools/generate_rules.py
	@$(RUN) tools/generate_nats_configurations.py
	@$(RUN) tools/generate_kubernetes_manifests.py

.PHONY: check
check: setup ## Linters, types, import rules, contracts up to date
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check --quiet .
	@$(RUN) -m mypy libs services/*/ deploy/embedded tools tests
	@$(VENV)/bin/lint-imports --no-cache
	@$(VENV)/bin/buf lint proto
	@$(RUN) tools/generate_schema.py --check
	@$(RUN) tools/generate_asyncapi.py --check
	@$(RUN) tools/generate_cli_reference.py --check
	@$(RUN) tools/generate_reasons.py --check
	@$(RUN) tools/generate_kubernetes_states.py --check
	@$(RUN) tools/generate_rules.py --check
	@$(RUN) tools/generate_nats_configurations.py --check
	@$(RUN) tools/generate_kubernetes_manifests.py --check

# What `make test` runs beside each other. Six workers for two processors: most tests wait most of their time.
BESIDE := -m "not slow" --ignore tests/browser --ignore tests/kubernetes tests

.PHONY: test
test: setup ## Everything a change must pass
	@# The browser waits most of its time, the checks take one processor. Read once afterwards, all tests are in Python's
	@# cache before six workers each want to compile them.
	@{ $(PYTEST) tests/browser && $(PYTEST) --collect-only --quiet --quiet $(BESIDE) >/dev/null; } & beside=$$!; \
		$(MAKE) --no-print-directory check || { wait; exit 1; }; wait $$beside
	@# Some tests have bounds in time and share the machine with others: what failed runs once more, alone, and must pass.
	@$(PYTEST) -n 6 --dist loadgroup $(BESIDE) || { \
		echo "These failed beside others and run once more, alone:"; \
		$(PYTEST) --last-failed --last-failed-no-failures none $(BESIDE); }

.PHONY: test-unit
test-unit: setup ## Pure tests only
	@$(PYTEST) tests/unit tests/architecture

.PHONY: test-browser
test-browser: setup ## The dashboard in a real browser
	@$(PYTEST) tests/browser

.PHONY: test-faults
test-faults: setup ## Random faults on a real instance, audited (SEED=1 OPERATIONS=10000 FAULTS=500; goes on where it was interrupted)
	@PYTHONPATH=tests $(RUN) -m faults --seed $(or $(SEED),1) --operations $(or $(OPERATIONS),10000) --faults $(or $(FAULTS),500)

.PHONY: test-deep
test-deep: setup ## Ownership: 2,000 seeds, each rule switched off, long state machine runs, larger models (SEEDS=100000; goes on if interrupted)
	@PYTHONPATH=tests $(RUN) -m simulation.deep --seeds $(or $(SEEDS),2000)
	@LANDBRIDGE_DEEP=1 $(PYTEST) --timeout 3600 tests/simulation/test_ownership_machine.py
	@$(PYTEST) --timeout 3600 -m slow tests/models

.PHONY: test-queues
test-queues: setup ## Queues: 10,000 random worlds, thousands of cases of backfill, a million operations in a thousand queues
	@$(PYTEST) -s -m slow tests/unit/domain tests/unit/benchmarks

.PHONY: test-load
test-load: setup ## 1,000 processes and 20,000 simulated operations while every service is killed twice
	@$(PYTEST) -s --timeout 1800 -k volume_through tests/faults/test_volume.py

.PHONY: test-outage
test-outage: setup ## 500 local processes while the whole centre is gone for three leases
	@$(PYTEST) -s --timeout 1800 -m slow tests/faults/test_centre_outage.py

.PHONY: test-cluster
test-cluster: setup ## Three NATS servers, the leader killed every 20 s for 3 minutes under load
	@$(PYTEST) -s --timeout 900 -m slow tests/faults/test_cluster.py

.PHONY: test-cut
test-cut: setup ## A link cut for CUT=300 seconds with 5,000 orders and 5,000 reports waiting, with and without a NATS of the site's own
	@CUT=$(or $(CUT),300) $(PYTEST) -s --timeout 1800 -m slow tests/faults/test_cut.py

.PHONY: test-directed
test-directed: setup ## Lost and full servers, restored backups, releases side by side: each on a whole instance
	@$(PYTEST) -m "slow or not slow" tests/faults/test_broker_loss.py tests/faults/test_database_loss.py \
		tests/faults/test_mixed_versions.py tests/faults/test_full_servers.py

.PHONY: test-kubernetes
test-kubernetes: setup ## Kubernetes on a cluster of yours (KUBECONFIG=FILE, as administrator; LANDBRIDGE_TEST_IMAGE=REF with sh for pods that run)
	@test -n "$(KUBECONFIG)" -a -r "$(KUBECONFIG)" || { echo "expected KUBECONFIG=FILE of a cluster to test on, found '$(KUBECONFIG)'"; exit 1; }
	@# Only namespaces that the tests make themselves are touched, and they are removed in the end.
	@LANDBRIDGE_TEST_KUBERNETES=1 KUBECONFIG="$(abspath $(KUBECONFIG))" $(PYTEST) -s --timeout 900 -k real -m "not slow" -rs \
		tests/contract/kubernetes_api tests/contract/executors $(wildcard tests/kubernetes)

.PHONY: test-restarts
test-restarts: setup ## 200 Jobs, the dispatcher killed 20 times, the API server restarted twice; what 1000 cost (KUBECONFIG=FILE: there too)
	@$(PYTEST) -s --timeout 1800 -m slow tests/integration/dispatcher/test_kubernetes.py
	@test -z "$(KUBECONFIG)" || LANDBRIDGE_TEST_KUBERNETES=1 KUBECONFIG="$(abspath $(KUBECONFIG))" $(PYTEST) -s --timeout 900 -m slow \
		-rs tests/kubernetes

.PHONY: bench
bench: setup ## Measure the control plane (QUICK=1: under a minute) into build/bench/control-plane.json
	@$(RUN) -m tests.benchmarks.control_plane $(if $(QUICK),--quick)

.PHONY: clean
clean: ## Remove what was built here
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
