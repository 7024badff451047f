# make help lists what can be made.

# Every module of this repository, the root first because it takes longest; the tools'
# own has nothing to test.
MODULES := . $(filter-out .,$(patsubst %/go.mod,%,$(sort $(shell find . -name go.mod -not -path "./internal/tools/*" -not -path "./internal/engines/vtcombo/*" -not -path "*/testdata/*"))))
# Those that programs use.
RELEASED := $(filter-out ./bench ./examples ./internal/%,$(MODULES))
# The rest of the engines' tests is run by test-engines alone.
TESTED := $(filter-out ./internal/engines,$(MODULES))

FUZZTIME  ?= 30s
BENCHTIME ?= 1s
SOAKTIME  ?= 5m
# How long each database of several servers has faults, and which: ENGINES=VITESS,GALERA
ENGINETIME ?= 1m
ENGINES   ?=
# The packages that mutants changes.
MUTATED   ?= internal/rewrite driver keygen/snowflake keygen/workerid keygen/sequence
# What go test gets besides: make test TESTFLAGS='-run Lease -v'
TESTFLAGS ?=

# Runs a command whose tests start the servers that they use, which end with it; the second
# one starts two first, for programs.
SERVERS     := go run ./internal/testserver/run
SQL_SERVERS := $(SERVERS) -servers mysql,mariadb
TOOL    := go tool -modfile=$(CURDIR)/internal/tools/go.mod

# Makes a target such as vet/./keygen/redis for each module, two modules at a time, and
# fails at the end when one has failed. Each module is built as its own go.mod
# specifies, without go.work.
each   = $(MAKE) --no-print-directory -k -j 2 $(addprefix $(1)/,$(or $(2),$(MODULES)))
module = cd $* && export GOWORK=off

# Where the tests note what they ran on which server.
RECORD := $(CURDIR)/bin/record

# A checkout that belongs to another user has no readable version control data.
export GOFLAGS := $(shell go env GOFLAGS) -buildvcs=false

.DEFAULT_GOAL := help
.PHONY: help test test-short test-engines soak-engines servers downloads tools servers-up servers-down unit matrix check fmt vet bits32 staticcheck tidy vuln bench bench-check bench-note fuzz mutants soak cover

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14
	@echo
	@echo 'variables: TESTFLAGS="$(TESTFLAGS)" BENCHTIME=$(BENCHTIME) FUZZTIME=$(FUZZTIME) SOAKTIME=$(SOAKTIME)'

# What is downloaded is downloaded at once, while the tool is built.
test: ## all tests with -race against private servers, and all checks
	@$(MAKE) --no-print-directory -j 3 servers downloads tools
	@failed=; for step in unit fmt vet bits32 staticcheck tidy vuln; do \
		echo "== $$step"; $(MAKE) --no-print-directory $$step || failed="$$failed $$step"; \
	done; \
	if [ -n "$$failed" ]; then echo "FAILED:$$failed"; exit 1; fi; echo 'all passed'

test-short: ## the tests that need no server, without -race
	@$(call each,test-short,$(TESTED))

test-short/%:
	@$(module) && go test -short $(TESTFLAGS) ./...

# Vitess' vtcombo is built by the first test that needs it. What is tried is written to
# standard error while it lasts; with -v the figures follow.
test-engines: servers ## Vitess, Spider, Galera, groups, replicas and haproxy: the forms of INSERT, failovers, then faults for ENGINETIME each
	@PATH=$$PATH:/usr/sbin; [ -e /usr/lib/galera/libgalera_smm.so ] && command -v haproxy >/dev/null || \
		bash .ci/install-servers galera-4 haproxy
	@export SHARDKEY_ENGINES=$(ENGINETIME) SHARDKEY_TEST_REQUIRE=1; \
		go test -count=1 -timeout 60m $(TESTFLAGS) ./internal/engines ./examples/vitess && \
		go test -v -count=1 -timeout 0 $(TESTFLAGS) ./internal/engines/chaos -subjects '$(ENGINES)'

soak-engines: ## the faults of test-engines for SOAKTIME each: make soak-engines SOAKTIME=1h ENGINES=GALERA
	@$(MAKE) --no-print-directory test-engines ENGINETIME=$(SOAKTIME)

servers: ## install the servers that the tests start (Debian, as root), or say what is missing
	@bash .ci/install-servers

downloads: ## download the modules that the packages of all modules need
	@$(call each,downloads)

downloads/%:
	@$(module) && go list -deps -test ./... >/dev/null

tools:
	@cd internal/tools && GOWORK=off go build -o $(CURDIR)/bin/staticcheck honnef.co/go/tools/cmd/staticcheck

# go test doesn't see that servers run now, and would repeat what it did without them.
servers-up: servers ## keep the servers that tests ask for running between runs
	@$(SERVERS) -up
	@go clean -testcache

servers-down: ## end these servers
	@$(SERVERS) -down

# The packages that take longest begin first, so that they are not waited for.
# What the tests note of themselves is compared with docs/internals/compatibility.md, unless
# only some of them run.
unit: ## the tests of all modules with -race, against private servers
	@mkdir -p bin; rm -f $(RECORD)
	@SHARDKEY_TEST_RECORD=$(RECORD) $(SERVERS) $(call each,unit)
	@go test -vet=off -run 'Alloc|Fleet|Simulation' ./keygen/uuid ./keygen/workerid # what is skipped with -race
	@$(if $(TESTFLAGS),,go run ./internal/testserver/matrix $(RECORD) docs/internals/compatibility.md)

# Of the engines' module: processes that are killed, over the stores that need no engine.
unit/./internal/engines:
	@cd $(@:unit/%=%) && GOWORK=off CGO_ENABLED=1 go test -race -vet=off -timeout 30m $(TESTFLAGS) -run TestChaos ./chaos

# The vet target does what go test would vet.
unit/%:
	@$(module) && CGO_ENABLED=1 go test -race -vet=off -timeout 30m $(TESTFLAGS) $$(ls -d ./driver ./internal/basesuite 2>/dev/null) ./...

matrix: ## docs/internals/compatibility.md of what the last run of all tests noted
	@go run ./internal/testserver/matrix -write $(RECORD) docs/internals/compatibility.md

check: fmt vet bits32 staticcheck tidy vuln ## everything that test does but the tests of 64 bits

fmt: ## fail on files that gofmt -s would change
	@files=$$(gofmt -s -l .); [ -z "$$files" ] || { echo "run gofmt -s -w on:"; echo "$$files"; exit 1; }

vet: ## go vet
	@$(call each,vet)

# With -race nothing is compiled that the tests have not compiled already.
vet/%:
	@$(module) && CGO_ENABLED=1 go vet -race ./...

# An int of 32 bits. Most amd64 machines run programs of 386 too; on one that doesn't, the
# tests are compiled and vetted.
bits32: ## the short tests of the modules for users, with GOARCH=386
	@run='go test -vet=off -short $(TESTFLAGS)'; \
	if ! GOARCH=386 CGO_ENABLED=0 go test -vet=off -run '^$$' ./internal/columntype >/dev/null 2>&1; then \
		echo 'This machine runs no 386 programs: their tests are compiled, not run.'; run='go vet'; \
	fi; \
	RUN="$$run" $(call each,bits32,$(RELEASED))

bits32/%:
	@$(module) GOARCH=386 CGO_ENABLED=0 && $${RUN:-go vet} ./...

staticcheck: tools ## staticcheck, as staticcheck.conf says
	@$(call each,staticcheck)

staticcheck/%:
	@$(module) && CGO_ENABLED=1 GOFLAGS="$$GOFLAGS -race" $(CURDIR)/bin/staticcheck ./...

tidy: ## fail when go.mod or go.sum is not as go mod tidy leaves it
	@$(call each,tidy)

tidy/%:
	@$(module) && go mod tidy -diff

vuln: ## govulncheck, where its database can be reached
	@$(call each,vuln)

vuln/%:
	@$(module) && TOOL='$(TOOL)' bash $(CURDIR)/.ci/vuln

bench: servers ## the benchmarks: the driver, generators and INSERTs next to their peers, growth
	@$(SERVERS) go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(TESTFLAGS) ./... ./keygen/redis/...
	@go run -C bench ./compare
	@$(SQL_SERVERS) go run -C bench ./inserts
	@$(SQL_SERVERS) go run -C bench ./growth

# After a change that improves a ratio: make bench-note
bench-check: servers ## fails if a ratio of INSERTs differs from bench/ratios.json
	@$(SQL_SERVERS) go run -C bench ./inserts -check ratios.json

bench-note: servers ## measures these ratios several times, on a quiet machine
	@$(SQL_SERVERS) go run -C bench ./inserts -note ratios.json
	@go test ./bench/inserts -run Pages -update

fuzz: ## each fuzz target for FUZZTIME
	@FUZZTIME=$(FUZZTIME) bash .ci/fuzz

mutants: ## changes of the code that no test finds, in MUTATED; fails if one is not listed with a reason
	@go run ./internal/repository/mutants $(MUTATED)

# The packages whose tests last as long as SHARDKEY_SOAK says, one after another.
soak: servers ## keys from processes that are killed, and generated statements, for SOAKTIME each
	@$(SERVERS) env SHARDKEY_SOAK=$(SOAKTIME) go test -v -count=1 -p 1 -timeout 0 $(TESTFLAGS) \
		$$(grep -rl --include='*_test.go' SHARDKEY_SOAK . | xargs -n 1 dirname | sort -u)

cover: servers ## coverage of the root module, to bin/cover.html
	@mkdir -p bin
	@$(SERVERS) go test -coverpkg=./... -coverprofile=bin/cover.out $(TESTFLAGS) ./...
	@go tool cover -html=bin/cover.out -o bin/cover.html
	@go tool cover -func=bin/cover.out | tail -1
