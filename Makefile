# Écluse. `make test` on a fresh machine needs Go, Node with npm, git and gcc; it installs the rest.
SHELL := /bin/sh
GO ?= go
TOOL := $(GO) tool -modfile=tools/go.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
PACKAGES ?= ./...
FUZZTIME ?= 20s
BENCH ?= .
COUNT ?= 1
PROFILES ?= dist/profiles
RESULTS := docs/performance/results.txt

.PHONY: build setup setup-system check format lint fuzz vuln test kills bench bench-report bench-plots bench-profile fix clean

build: ## bin/ecluse, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/ecluse ./cmd/ecluse

setup: setup-system testtools/node_modules/.installed ## what the tests drive: clients, a registry, system tools

setup-system:
	tools/setup-system

testtools/node_modules/.installed: testtools/package-lock.json testtools/package.json
	cd testtools && npm ci --no-progress --loglevel=error --fetch-retries=5
	touch $@

# In the order of cost: the first failure stops.
check: format ## everything that needs no running
	$(GO) vet $(PACKAGES)
	$(GO) build $(PACKAGES)
	$(GO) test ./internal/archtest
	$(GO) test -tags purego ./internal/listing ./internal/npm/packument
	GOARCH=arm64 $(GO) vet ./internal/listing
	$(GO) -C tools vet ./benchplot
	$(GO) -C tools test ./benchplot
	$(MAKE) --no-print-directory lint
	GO='$(GO)' tools/deadcode
	$(GO) mod tidy -diff
	@echo 'go fix -diff $(PACKAGES)'; out=$$($(GO) fix -diff $(PACKAGES)) && test -z "$$out" || { echo "$$out"; echo 'go fix has something to say: run make fix'; exit 1; }
	$(MAKE) --no-print-directory vuln

format:
	@echo gofumpt; out=$$($(TOOL) gofumpt -d .) && test -z "$$out" || { echo "$$out"; echo 'not formatted: run make fix'; exit 1; }

lint:
	$(TOOL) staticcheck $(PACKAGES)
	$(TOOL) golangci-lint run $(PACKAGES)

# Not a part of check: chance decides what it finds, and a change is not to fail for what was there before. The seeds run with the tests.
fuzz: ## each fuzz target for FUZZTIME
	GO='$(GO)' tools/fuzz $(FUZZTIME)

vuln: ## known vulnerabilities, if the database can be reached
	GO='$(GO)' tools/vuln $(PACKAGES)

test: setup ## every test once, shuffled, with the race detector; counts them
	$(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg -- -shuffle=on -race -timeout 30m $(PACKAGES)
	$(GO) test -run 'TestHugeDocuments' ./internal/app

kills: setup ## a thousand runs killed at random moments, and every system call of one; make test kills a hundred
	ECLUSE_TEST_KILLS=1000 $(GO) test -v -run 'TestKilledAtRandom$$' -timeout 60m ./cmd/ecluse | grep -v '^ *--- PASS: TestKilledAtRandom/\|^=== '
	ECLUSE_TEST_FULL=1 $(GO) test -run 'TestKilledAtEverySystemCall' -timeout 60m ./cmd/ecluse

bench: setup
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 30m $(PACKAGES)

# Each repetition of a comparison asks all servers one after the other, so that ratios are of measurements that follow each other.
bench-report: setup ## measures the goals and the growth curves again: raw results, pictures, table; a quarter of an hour on a quiet machine
	@mkdir -p $(dir $(RESULTS)) && : >$(RESULTS)
	$(GO) test -run '^$$' -bench '^Benchmark(Listing|NotModified|Refusal|Artifact|ColdArtifact)$$' -count 5 -timeout 30m ./internal/bench >>$(RESULTS)
	$(GO) test -run '^$$' -bench '^Benchmark(Pack|ComesOfAge|Merged)$$' -count 5 ./internal/segment ./internal/app >>$(RESULTS)
	$(GO) test -run '^$$' -bench '^BenchmarkGrowth' -count 3 -timeout 30m ./internal/bench >>$(RESULTS)
	$(MAKE) --no-print-directory bench-plots

bench-plots: ## pictures and table from the raw results
	$(GO) -C tools run ./benchplot -in ../$(RESULTS) -plots ../$(dir $(RESULTS)) -page ../docs/performance.md

# PROFILES is where the profiles go, one for each benchmark.
bench-profile: setup ## where the gate's time goes under the load of BENCH
	@mkdir -p $(PROFILES)
	BENCH_PROFILE='$(abspath $(PROFILES))' $(GO) test -run '^$$' -bench '$(BENCH)' -timeout 30m ./internal/bench
	@for f in $(PROFILES)/*.pprof; do echo; echo "$$f"; $(GO) tool pprof -top -nodecount 15 "$$f"; $(GO) tool pprof -top -cum -nodecount 15 -show ecluse-gate "$$f"; done 2>/dev/null

fix: ## formats, modernizes and brings docs/requirements.md up to date
	$(TOOL) gofumpt -w .
	$(GO) fix $(PACKAGES)
	$(GO) test ./internal/archtest -run TestProject -update

clean:
	rm -rf bin dist testtools/node_modules
