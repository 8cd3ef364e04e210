# Parley. `make help` names the targets; CONTRIBUTING.md says when to use which.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

GO ?= go
# The toolchain of releases and of the shipped plugins: their bytes are compared.
export GOTOOLCHAIN ?= go1.26.8
# As releases are built: a process that does not load a libc starts faster. Only the race detector requires cgo.
export CGO_ENABLED := 0
# Tools are pinned here and run by their version, so that go.mod has only what Parley itself requires.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
PLUGINS := $(patsubst plugins/%/,%,$(dir $(wildcard plugins/*/plugin.go plugins/*/build.mjs)))
# build_plugin NAME OUT MANIFEST builds a shipped plugin. A module that is not Go has a build.mjs and a manifest.json.
build_plugin = build_plugin() { \
	if [[ -f plugins/$$1/build.mjs ]]; then \
	  local module=$$(mktemp --suffix .wasm); node plugins/$$1/build.mjs $$module; \
	  bin/parley plugin pack $$module --manifest plugins/$$1/manifest.json --out $$2; rm $$module; \
	  [[ plugins/$$1/manifest.json -ef $$3 ]] || cp plugins/$$1/manifest.json $$3; \
	else bin/parley plugin build plugins/$$1 --out $$2 --manifest $$3; fi; }
# Packages of concurrent code; tested with the race detector, the others without. Of ./host/wasm, whose tests mostly compile modules, only
# the concurrent tests run with it. The slowest packages come first.
RACE := ./cdp/internal/keeper/... ./host ./host/approve ./host/call ./host/record ./host/record/audit ./host/record/trace
RACE_WASM := TestProvider|TestConcurrent|TestHammer|TestSwapped|TestSharedCache|TestTooManyCalls|TestGarbageCollection|TestHostCalls|TestCompileInterrupted|TestDeadline|TestIsolatedDeadline|TestBusy

# Three runs share the cores, and of each two tests at a time: with more, tests of deadlines wait for the processor
# instead of for what they test. `make lint` vets, with more checks than go test; debug information takes a third of the
# time of linking.
TESTFLAGS := -timeout 40m -p 1 -parallel 2 -vet=off -ldflags=-w

# How long each fuzz target runs, and how many times the hammer tests repeat themselves.
FUZZTIME ?= 30s
HAMMER ?= 20

# The race detector requires a C compiler; clang is required for the fixtures anyway.
ifeq ($(shell command -v gcc),)
export CC := clang
endif

.PHONY: build demo test test-fast test-cli test-race test-browser test-plain test-service test-bench lint bench acts components documents soak tokens \
	hammer mutants fuzz plugins fixtures generate check-generated check-plugins check-fixtures \
	check-generate cross release setup programs clean help

build: ## build bin/parley, without symbols, as releases are; for a debugger use go build
	$(GO) build -ldflags='-s -w' -o bin/parley ./cmd/parley

demo: setup build ## show the main job against a real browser
	$(GO) run ./internal/demo

test: setup programs build ## run all tests, the concurrent packages with the race detector
	@changed() { git status --porcelain 2>/dev/null | sort; }; before=$$(changed || true); status=0; \
	$(MAKE) --no-print-directory --keep-going --jobs 3 test-cli test-race test-browser test-plain test-service test-bench || status=1; \
	left=$$(comm -13 <(echo "$$before") <(changed || true)); \
	if [[ -n $$left ]]; then echo "the tests changed files of the tree:"; echo "$$left"; exit 1; fi; \
	exit $$status

# What test-fast leaves out needs Chrome, a network, or minutes.
SLOW = parley|cdp|cdp/internal/browser|cdp/internal/keeper|cdp/page|cmd/parley/internal/cli|host/admit|host/mcp|host/wasm|internal/repo

test-fast: ## run what needs neither Chrome nor a network nor minutes, for the inner loop
	@$(GO) test $$($(GO) list ./... | grep -vE '/($(SLOW))$$')

test-cli: # with the collector of parley's main
	@GOGC=400 $(GO) test $(TESTFLAGS) ./cmd/...

test-browser: # each test at a time has a browser of its own, and mostly waits for its pages
	@$(GO) test $(TESTFLAGS) -parallel 3 $$($(GO) list ./cdp/... | grep -vxF "$$($(GO) list $(RACE))")

test-plain:
	@$(GO) test $(TESTFLAGS) $$($(GO) list ./... | \
	  grep -vxF "$$($(GO) list ./cmd/... ./cdp/... $(RACE))")

test-race:
	@export CGO_ENABLED=1; status=0; \
	$(GO) test -race $(TESTFLAGS) $(RACE) || status=1; \
	$(GO) test -race $(TESTFLAGS) -run '$(RACE_WASM)' ./host/wasm ./host/wasm/store || status=1; \
	exit $$status

test-service:
	@$(GO) -C cmd/parleyd test $(TESTFLAGS) ./...

test-bench:
	@$(GO) -C bench test $(TESTFLAGS) ./...

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(git ls-files -co --exclude-standard -- '*.go' | xargs gofmt -l); \
	if [[ -n $$unformatted ]]; then echo "not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	for module in bench cmd/parleyd; do $(GO) -C $$module vet ./...; done
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./sdk/go ./plugins/...
	$(GO) run $(STATICCHECK) ./...
	for module in bench cmd/parleyd; do (cd $$module && $(GO) run $(STATICCHECK) ./...); done

bench: build ## medians of whole processes against baselines of the same run
	$(GO) -C bench run .

acts: programs ## verbs of page beside agent-browser, what a click costs, and whether its effects are told
	$(GO) -C bench run ./acts

components: ## acts on pages of component libraries, and what a person sees of them
	$(GO) -C bench run ./components

documents: ## what becomes of public OpenAPI documents: operations, costs, and the errors of wrong calls
	$(GO) -C bench run ./documents

soak: programs ## random verbs on component pages for two hours: memory, faults, processes that are left
	$(GO) -C bench run ./acts -part soak -v

tokens: build programs ## what tools/list costs, of parley and of third-party servers
	$(GO) -C bench run ./tokens

hammer: ## the long runs: repeated concurrency tests, more random rounds
	CGO_ENABLED=1 PARLEY_HAMMER=$(HAMMER) $(GO) test -race -timeout 60m -count $(HAMMER) -run Hammer \
	  $$(git grep -lE 'func TestHammer' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,')
	SCHEMA_ROUNDS=200000 $(GO) test -timeout 60m ./manifest/schema
	PARLEY_HAMMER=1 $(GO) test -timeout 240m -v -p 1 \
	  $$(git grep -l PARLEY_HAMMER -- '*_test.go' ':!bench' ':!cmd/parleyd' | xargs -n1 dirname | sort -u | sed 's,^,./,') | \
	  grep -E 'figures|FAIL|panic|_test.go:|^ok'
	PARLEY_HAMMER=1 $(GO) -C cmd/parleyd test -timeout 90m -v -p 1 \
	  -run 'TestSoak|TestThroughput|TestOverhead|TestKills|TestThousandWorkers|TestTenThousand|TestCorpus|TestPartition' \
	  ./internal/service ./internal/fleet/... | grep -E 'figures|FAIL|panic|_test.go:|^ok'
	PARLEY_HAMMER=1 $(GO) -C bench test -timeout 60m -run 'ExamplesRun|Replay' ./trial ./scenarios
	PARLEY_HAMMER=1 $(GO) -C bench test -timeout 60m -v -run TestMistakesAreRecovered ./agent
	PARLEY_HAMMER=1 DIFFERENTIAL_MODULES=5000 $(GO) test -timeout 60m -run 'Differential|SamePrograms' -v ./host/wasm/internal/instrument

mutants: ## put faults into the code on purpose, and report those that no test detects
	$(GO) -C bench run ./mutants

# The go command calls its own deadline a failure when a worker is slow to stop; only an input that fails is a finding.
fuzz: ## each fuzz target for FUZZTIME (30s)
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; failed=0; \
	for package in $$(git grep -lE '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do \
	  for target in $$($(GO) -C $$package test -list '^Fuzz' . | grep '^Fuzz' || true); do \
	    echo "== $$package $$target"; \
	    if ! $(GO) -C $$package test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) . 2>&1 | tee "$$log"; then \
	      grep -q '^ *context deadline exceeded$$' "$$log" && ! grep -q 'Failing input' "$$log" || failed=1; \
	    fi; \
	  done; \
	done; exit $$failed

# zopfli, a package of Debian, makes them 5 % smaller than gzip does.
plugins: build programs ## rebuild the shipped plugins and their index; commit one only when its source changed
	@export PARLEY_HOME=$$(mktemp -d); trap 'rm -rf "$$PARLEY_HOME"' EXIT; $(build_plugin); \
	for name in $(PLUGINS); do \
	  build_plugin $$name $$PARLEY_HOME/$$name plugins/$$name/manifest.json; \
	  echo "sha256:$$(sha256sum <$$PARLEY_HOME/$$name | cut -d' ' -f1)" >plugins/$$name/digest; \
	  zopfli -c $$PARLEY_HOME/$$name >plugins/$$name/plugin.wasm.gz; \
	done; \
	$(GO) generate ./plugins ./host/mcp ./cmd/parley/internal/cli

fixtures: ## rebuild the guests that tests run, after changing their source
	.ci/fixtures .

generate: ## regenerate what go generate makes
	$(GO) generate ./host/internal/index ./cdp/... ./sdk ./plugins ./host/mcp ./cmd/parley/internal/documents \
	  ./cmd/parley/internal/cli

check-generated: check-plugins check-fixtures check-generate ## committed build results equal what their sources produce
	for module in . bench cmd/parleyd; do $(GO) -C $$module mod tidy -diff; $(GO) -C $$module mod verify; done

check-plugins: build programs
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; export PARLEY_HOME=$$work/home; failed=0; $(build_plugin); \
	for name in $(PLUGINS); do \
	  build_plugin $$name $$work/$$name.wasm $$work/$$name.json >/dev/null; \
	  built=$$(sha256sum <$$work/$$name.wasm | cut -d' ' -f1); \
	  shipped=$$(gzip -dc plugins/$$name/plugin.wasm.gz | sha256sum | cut -d' ' -f1); \
	  if [[ $$built == "$$shipped" ]] && cmp -s $$work/$$name.json plugins/$$name/manifest.json && [[ sha256:$$built == $$(<plugins/$$name/digest) ]]; then \
	    echo "ok plugin $$name $$built"; \
	  else \
	    echo "plugins/$$name is not what its source makes (built $$built, shipped $$shipped); run make plugins"; failed=1; \
	  fi; \
	done; exit $$failed

check-fixtures:
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; failed=0; \
	.ci/fixtures $$work; \
	for built in $$(cd $$work && find . -name '*.wasm'); do \
	  cmp $$work/$$built $$built || failed=1; \
	done; \
	if ((failed)); then echo "these guests are not what their sources make; run make fixtures"; exit 1; fi; \
	echo "ok fixtures"

# A tree with changes can be checked, too: generating must not change anything else.
check-generate:
	@made="host/internal/index host/mcp cdp sdk plugins cmd/parley/internal/documents docs/skills"; \
	before=$$(git diff -- $$made | sha256sum); \
	$(MAKE) --no-print-directory generate; \
	if [[ $$(git diff -- $$made | sha256sum) != "$$before" ]]; then \
	  git --no-pager diff --stat -- $$made; echo "make generate changed these files; commit the result"; exit 1; \
	fi; \
	echo "ok go generate"

cross: ## build the programs for each system, and vet for Windows, which differs most
	@for platform in linux/arm64 darwin/arm64 windows/amd64; do \
	  export GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
	  echo "== $$platform"; $(GO) build -ldflags=-w ./cmd/parley/...; \
	  if [[ $$platform == linux/arm64 ]]; then $(GO) -C cmd/parleyd build -ldflags=-w ./...; fi; \
	  if [[ $$platform == windows/amd64 ]]; then $(GO) vet ./...; $(GO) -C bench vet ./...; fi; \
	done

release: ## archives with checksums for all six platforms, in dist/
	$(GO) run ./internal/release $(PLATFORMS)

setup: ## install what is missing (Debian), or print it
	@.ci/setup

programs: ## fetch the third-party programs that tests run
	@.ci/programs

clean: ## remove bin/ and dist/
	rm -rf bin dist

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/:.*## /\t/' | expand -t 18
