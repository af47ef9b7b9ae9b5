# Écluse. `make test` on a fresh machine needs Go, Node with npm, git and gcc; it installs the rest.
SHELL := /bin/sh
GO ?= go
TOOL := $(GO) tool -modfile=tools/go.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
PACKAGES ?= ./...
FUZZTIME ?= 2s
BENCH ?= .
COUNT ?= 5

.PHONY: build setup setup-system check format lint fuzz vuln test bench fix clean

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
	$(MAKE) --no-print-directory lint
	$(GO) mod tidy -diff
	@echo 'go fix -diff $(PACKAGES)'; out=$$($(GO) fix -diff $(PACKAGES)) && test -z "$$out" || { echo "$$out"; echo 'go fix has something to say: run make fix'; exit 1; }
	$(MAKE) --no-print-directory fuzz vuln

format:
	@echo gofumpt; out=$$($(TOOL) gofumpt -d .) && test -z "$$out" || { echo "$$out"; echo 'not formatted: run make fix'; exit 1; }

lint:
	$(TOOL) staticcheck $(PACKAGES)
	$(TOOL) golangci-lint run $(PACKAGES)

fuzz: ## each fuzz target for FUZZTIME
	GO='$(GO)' tools/fuzz $(FUZZTIME)

vuln: ## known vulnerabilities, if the database can be reached
	GO='$(GO)' tools/vuln $(PACKAGES)

test: setup ## every test once, shuffled, with the race detector; counts them
	$(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg -- -shuffle=on -race -timeout 30m $(PACKAGES)
	$(GO) test -run 'TestHugeDocuments' ./internal/server

bench: setup
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES)

fix: ## what a machine can mend
	$(TOOL) gofumpt -w .
	$(GO) fix $(PACKAGES)

clean:
	rm -rf bin dist testtools/node_modules
