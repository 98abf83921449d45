# The workshop. Every target sets up what it needs; the second time it starts at once.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
NODE_SERVERS := tests/node_modules/.package-lock.json
RAY := .venv-ray/.installed
DEMO := .venv-demo/.installed
DEMO_BIN := .venv-demo/bin
OLD_SERVERS := .venv-servers/.installed

FRAMEWORKS := langgraph pydantic_ai openai_agents smolagents llama_index google_adk crewai claude_agent_sdk

PYTHON_TOOLS := bridges migrating notebook pytest
TOOLS := $(PYTHON_TOOLS) promptfoo coding-agents

# Tests start hundreds of processes: each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

# A worker waits for processes, servers and the browser a third of its time: six are the quickest.
# Simulations and storms of the slow set are kept to four.
TESTS := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -p tests.workers tests -q
FAST := $(TESTS) --workers 6 -m "not slow" --hypothesis-profile quick
TESTED := $(INSTALLED) $(NODE_SERVERS) $(OLD_SERVERS) .venv/.weights

.PHONY: package help demo test test-all frameworks $(FRAMEWORKS:%=framework-%) ray tools search mutations check fix bench corpus calibrate generate docs lock clean

help: ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(DEMO) ## the main job, with no key: a real model and a real MCP server on this machine
	@if $(DEMO_BIN)/passhat local pull && $(DEMO_BIN)/passhat local status; then \
	  mkdir -p build/demo; \
	  $(DEMO_BIN)/passhat run examples/local-model/passhat.yml --live \
	    --store build/demo/history.db --html build/demo/report.html; code=$$?; \
	  case $$code in 0|1|4) ;; *) exit $$code;; esac; \
	else \
	  echo "no local model on this machine: here is the demonstration that needs none"; \
	  $(DEMO_BIN)/passhat demo; \
	fi

test: $(TESTED) ## all but what is slow for a reason that it names: five minutes on two cores
	$(FAST) -p no:pytest_cov

# Counting lines costs 70 % more CPU: it is done where every law is, and neither in simulations nor
# in the hundred examples of each property.
test-all: $(TESTED) ## every test, the slow ones too, with coverage
	$(FAST) --cov --cov-report=term:skip-covered
	$(TESTS) --workers 4 -m "slow or hypothesis"

frameworks: $(FRAMEWORKS:%=framework-%) ## agents of real frameworks, each in an environment of its own (slow; -j 2 helps)

$(FRAMEWORKS:%=framework-%): framework-%: .venv-frameworks/%/.installed
	@if test -s $<; then echo "$*: skipped, it could not be installed"; else cd tests/frameworks && \
	  ../../.venv-frameworks/$*/bin/python -m pytest -q -c /dev/null --rootdir . --confcutdir . \
	    -p no:cacheprovider test_$*.py; fi

tools: $(INSTALLED) $(TOOLS:%=.venv-tools/%/.installed) ## with real notebooks, pytest plugins and evaluation tools, each in an environment of its own
	$(BIN)/python -m pytest -q tests/tools

ray: $(INSTALLED) $(RAY) ## runs on a real Ray cluster on this machine, killed as they go (some minutes)
	$(BIN)/python -m pytest -q tests/journeys/test_ray_executor.py tests/journeys/test_ray_data.py tests/journeys/test_history_files.py tests/reporters/test_deployments.py

search: $(INSTALLED) $(NODE_SERVERS) ## properties on many new random examples (takes long)
	$(BIN)/python -m pytest tests -q -n 2 -m hypothesis --hypothesis-profile search --timeout 1800

check: $(INSTALLED) ## lint, format, types, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(INSTALLED) ## let ruff mend what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: .venv-bench/.installed ## ratios against peers, measured in one run
	.venv-bench/bin/python -m bench

mutations: $(INSTALLED) ## break 100,000 result files, 20,000 cassettes and outputs, 200 stores: each is read or refused in a sentence (some minutes)
	$(BIN)/python -m tests.ingest.mutation_search
	$(BIN)/python -m tests.runner.mutations
	$(BIN)/python -m tests.history.test_damage

corpus: $(INSTALLED) ## keep the numbers of fifty analyses as they are now
	$(BIN)/python -m tests.corpus.analyses

calibrate: $(INSTALLED) .venv-peers/.installed ## simulations behind docs/explanation/calibration.md; goes on where it was interrupted
	$(BIN)/python -m bench.calibrate

generate: $(INSTALLED) ## everything that is made from the code: commands, suite, schemas, glossary
	$(BIN)/python docs/reference/generate.py

docs: .venv-docs/.installed ## the documentation as a site, in build/docs
	.venv-docs/bin/sphinx-build -W --keep-going -q docs build/docs

package: $(INSTALLED) ## wheel and source archive in dist, tried in empty environments, with a bill of materials
	$(BIN)/python -m bench.packaging

COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-strip-extras --no-emit-index-url --no-header --python-version 3.11

lock: $(INSTALLED) ## pin and hash every environment anew
	$(BIN)/pip install --quiet uv
	for name in dev bench docs; do $(COMPILE) --extra $$name pyproject.toml -o requirements/$$name.lock; done
	$(COMPILE) -c requirements/dev.lock --extra local requirements/demo.in pyproject.toml -o requirements/demo.lock
	for name in servers peers; do $(COMPILE) requirements/$$name.in -o requirements/$$name.lock; done
	for name in $(FRAMEWORKS:%=frameworks/%); do \
	  $(COMPILE) requirements/$$name.in requirements/frameworks/common.in pyproject.toml -o requirements/$$name.lock; \
	done
	for name in $(PYTHON_TOOLS:%=tools/%); do \
	  $(COMPILE) requirements/$$name.in --extra run pyproject.toml -o requirements/$$name.lock; \
	done
	cd requirements/tools/coding-agents && npm install --package-lock-only --no-audit --no-fund
	$(COMPILE) requirements/tools/coding-agents/aider.in -o requirements/tools/coding-agents/aider.lock
	$(COMPILE) requirements/ray.in --extra cloud --extra frames --extra postgres --extra run pyproject.toml \
	  -o requirements/ray.lock
	$(COMPILE) --no-deps requirements/schemas.in -o requirements/schemas.lock

clean: ## remove the environment and everything made
	rm -rf .venv .venv-demo .venv-frameworks .venv-bench .venv-peers .venv-docs .venv-ray .venv-servers .venv-tools build dist tests/node_modules .bounds .coverage .mypy_cache .ruff_cache .hypothesis

$(INSTALLED): requirements/dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	touch $@

# Half the packages of the development environment: a first look needs no development tools.
$(DEMO): requirements/demo.lock pyproject.toml
	test -x $(DEMO_BIN)/python || $(PYTHON) -m venv .venv-demo
	$(DEMO_BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/demo.lock
	$(DEMO_BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	touch $@

# Frameworks need different versions of the same packages. Where one cannot be installed, its tests skip.
.venv-frameworks/%/.installed: requirements/frameworks/%.lock pyproject.toml | .venv-frameworks/uv/bin/uv
	@test -x .venv-frameworks/$*/bin/python || $(PYTHON) -m venv .venv-frameworks/$*
	@if .venv-frameworks/uv/bin/uv pip install --quiet --python .venv-frameworks/$*/bin/python \
	    --require-hashes -r requirements/frameworks/$*.lock \
	  && .venv-frameworks/uv/bin/uv pip install --quiet --python .venv-frameworks/$*/bin/python --no-deps --editable .; \
	then : > $@; else echo "cannot be installed" > $@; fi

# Ray, an S3 server and the published schemas of deployments, which bring packages and versions of
# their own; where they cannot be had, their tests skip.
$(RAY): requirements/ray.lock requirements/schemas.lock pyproject.toml
	test -x .venv-ray/bin/python || $(PYTHON) -m venv .venv-ray
	.venv-ray/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/ray.lock
	.venv-ray/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/schemas.lock
	.venv-ray/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

.venv-frameworks/uv/bin/uv:
	@$(PYTHON) -m venv .venv-frameworks/uv
	@.venv-frameworks/uv/bin/pip install --quiet --disable-pip-version-check uv

# Where a tool cannot be had, its environment has no `.installed` and its tests skip.
.venv-tools/%/.installed: requirements/tools/%.lock pyproject.toml
	@test -x .venv-tools/uv/bin/uv || { $(PYTHON) -m venv .venv-tools/uv && \
	  .venv-tools/uv/bin/pip install --quiet --disable-pip-version-check uv; }
	@test -x .venv-tools/$*/bin/python || $(PYTHON) -m venv .venv-tools/$*
	@.venv-tools/uv/bin/uv pip install --quiet --python .venv-tools/$*/bin/python \
	    --require-hashes -r requirements/tools/$*.lock \
	  && .venv-tools/uv/bin/uv pip install --quiet --python .venv-tools/$*/bin/python --no-deps --editable . \
	  && touch $@ || echo "$*: cannot be installed, its tests will be skipped"

.venv-tools/promptfoo/.installed:
	@mkdir -p .venv-tools/promptfoo && npm install --silent --no-audit --no-fund \
	    --prefix .venv-tools/promptfoo promptfoo@0.121.20 && touch $@ \
	  || echo "promptfoo: cannot be installed, its test will be skipped"

# Nearly a gigabyte, pinned and hashed. npm's lock lacks what its registry has not for each platform,
# which `npm ci` would refuse. Where one cannot be had, its tests skip, and the next `make` tries again.
AGENTS := .venv-tools/coding-agents
AGENTS_LOCKED := requirements/tools/coding-agents
.venv-tools/coding-agents/.installed: $(AGENTS_LOCKED)/package-lock.json $(AGENTS_LOCKED)/aider.lock
	@test -x .venv-tools/uv/bin/uv || { $(PYTHON) -m venv .venv-tools/uv && \
	  .venv-tools/uv/bin/pip install --quiet --disable-pip-version-check uv; }
	@mkdir -p $(AGENTS) && cp $(AGENTS_LOCKED)/package.json $(AGENTS_LOCKED)/package-lock.json $(AGENTS_LOCKED)/.npmrc $(AGENTS)
	@npm install --silent --no-audit --no-fund --prefix $(AGENTS); npm=$$?; \
	  test $$npm -eq 0 || echo "coding agents of npm: cannot be installed, their tests will be skipped"; \
	  $(PYTHON) -m venv $(AGENTS) && .venv-tools/uv/bin/uv pip install --quiet \
	    --python $(AGENTS)/bin/python --require-hashes -r $(AGENTS_LOCKED)/aider.lock; pip=$$?; \
	  test $$pip -eq 0 || echo "aider: cannot be installed, its test will be skipped"; \
	  test $$npm$$pip != 00 || touch $@

# The weights of the local model; where they cannot be had, tests that need them skip with a reason.
.venv/.weights: $(INSTALLED)
	@$(BIN)/passhat local pull && touch $@ || true

# Peers live in an environment of their own: they bring a hundred packages and a pytest plugin.
.venv-bench/.installed: requirements/bench.lock pyproject.toml
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.lock
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	touch $@

# Packages that print intervals of their own; where they cannot be had, their columns are left out.
.venv-peers/.installed: requirements/peers.lock
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/peers.lock && touch $@ || rm -rf .venv-peers/bin

.venv-docs/.installed: requirements/docs.lock pyproject.toml
	test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.lock
	.venv-docs/bin/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	touch $@

# MCP servers on the first generation of the SDK; where they cannot be had, their tests skip.
$(OLD_SERVERS): requirements/servers.lock
	@test -x .venv-servers/bin/python || $(PYTHON) -m venv .venv-servers
	@.venv-servers/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
	  -r requirements/servers.lock && touch $@ || echo "tests against mcp-server-sqlite will be skipped"

# MCP servers that others wrote; tests that need them skip with a reason where npm is absent.
$(NODE_SERVERS): tests/package.json tests/package-lock.json
	@if command -v npm >/dev/null; then \
	  cd tests && npm ci --silent --no-audit --no-fund && touch node_modules/.package-lock.json; \
	else echo "npm is absent: tests against npm's MCP servers will be skipped"; fi
