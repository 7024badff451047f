# make help lists what can be made.

# Every module of this repository; the tools' own has nothing to test.
MODULES := $(patsubst %/go.mod,%,$(wildcard ./go.mod examples/go.mod bench/go.mod))

FUZZTIME  ?= 30s
BENCHTIME ?= 1s
SOAKTIME  ?= 5m
# What go test gets besides: make test TESTFLAGS='-run Lease -v'
TESTFLAGS ?=

# Starts private servers around a command, and stops them after it.
SERVERS := go run ./internal/testserver/run --
TOOL    := go tool -modfile=$(CURDIR)/internal/tools/go.mod

# A checkout that belongs to another user has no readable version control data.
export GOFLAGS := $(shell go env GOFLAGS) -buildvcs=false

.DEFAULT_GOAL := help
.PHONY: help test test-short servers unit check fmt vet staticcheck tidy vuln bench fuzz soak cover

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14
	@echo
	@echo 'variables: TESTFLAGS="$(TESTFLAGS)" BENCHTIME=$(BENCHTIME) FUZZTIME=$(FUZZTIME) SOAKTIME=$(SOAKTIME)'

test: servers ## all tests with -race against private servers, and all checks
	@failed=; for step in unit fmt vet staticcheck tidy vuln; do \
		echo "== $$step"; $(MAKE) --no-print-directory $$step || failed="$$failed $$step"; \
	done; \
	if [ -n "$$failed" ]; then echo "FAILED:$$failed"; exit 1; fi; echo 'all passed'

test-short: ## the tests that need no server, without -race
	@for m in $(MODULES); do echo "== module $$m"; go test -C $$m -short $(TESTFLAGS) ./... || exit 1; done

servers: ## install the servers that the tests start (Debian, as root), or say what is missing
	@bash .ci/install-servers

unit: ## the tests of all modules with -race, against private servers
	@$(SERVERS) sh -c 'failed=0; for m in $(MODULES); do echo "== module $$m"; \
		CGO_ENABLED=1 go test -C $$m -race -timeout 12m $(TESTFLAGS) ./... || failed=1; done; exit $$failed'

check: fmt vet staticcheck tidy vuln ## everything that test does but the tests

fmt: ## fail on files that gofmt -s would change
	@files=$$(gofmt -s -l .); [ -z "$$files" ] || { echo "run gofmt -s -w on:"; echo "$$files"; exit 1; }

vet: ## go vet
	@for m in $(MODULES); do go vet -C $$m ./... || exit 1; done

staticcheck: ## staticcheck, as staticcheck.conf says
	@for m in $(MODULES); do (cd $$m && $(TOOL) staticcheck ./...) || exit 1; done

tidy: ## fail when go.mod or go.sum is not as go mod tidy leaves it
	@for m in $(MODULES); do go mod tidy -C $$m -diff || exit 1; done

vuln: ## govulncheck, where its database can be reached
	@for m in $(MODULES); do (cd $$m && TOOL='$(TOOL)' bash $(CURDIR)/.ci/vuln) || exit 1; done

bench: servers ## all benchmarks, those beside the peers included
	@$(SERVERS) sh -c 'for m in $(MODULES); do echo "== module $$m"; \
		go test -C $$m -run "^$$" -bench . -benchmem -benchtime $(BENCHTIME) $(TESTFLAGS) ./... || exit 1; done'

fuzz: ## each fuzz target for FUZZTIME
	@FUZZTIME=$(FUZZTIME) bash .ci/fuzz

soak: servers ## processes that are killed, paused and cut off make keys for SOAKTIME
	@$(SERVERS) env SHARDKEY_SOAK=$(SOAKTIME) go test -count=1 -timeout 0 -v -run Soak $(TESTFLAGS) ./...

cover: servers ## coverage of the root module, to bin/cover.html
	@mkdir -p bin
	@$(SERVERS) go test -coverpkg=./... -coverprofile=bin/cover.out $(TESTFLAGS) ./...
	@go tool cover -html=bin/cover.out -o bin/cover.html
	@go tool cover -func=bin/cover.out | tail -1
