# "make help" lists the targets.

# All modules of this repository except the tools, which have no tests. The root comes first
# because it takes longest.
MODULES := . $(filter-out .,$(patsubst %/go.mod,%,$(sort $(shell find . -name go.mod -not -path "./internal/test/tools/*" -not -path "./internal/test/engines/vtcombo/*" -not -path "*/testdata/*"))))
# The modules for programs.
RELEASED := $(filter-out ./bench ./examples ./examples/% ./internal/%,$(MODULES))
# The modules whose tests "make ci" runs completely. test-engines and applications run the rest.
TESTED := $(filter-out ./internal/test/engines ./internal/test/applications,$(MODULES))
# The modules whose tests "make test" runs.
NEWCOMERS := $(filter-out ./internal/test/release,$(TESTED))
# The packages with goroutines, which "make test" also runs with -race -short.
RACE ?= ./driver ./keygen/workerid ./rule ./keygen/snowflake

FUZZTIME  ?= 30s
BENCHTIME ?= 1s
SOAKTIME  ?= 5m
# The duration of the faults for each database of several servers, and the databases, such as
# ENGINES=VITESS,GALERA. The default is all.
ENGINETIME ?= 1m
ENGINES   ?=
# The packages that mutants changes.
MUTATED   ?= rewrite driver driver/internal/fill driver/internal/outcome keygen/snowflake keygen/workerid keygen/segment
# More arguments of go test: make test TESTFLAGS='-run Lease -v'
TESTFLAGS ?=

# Runs a command whose tests start the servers that they use, which end with it.
SERVERS := go run ./internal/test/server/run

# Makes a target such as vet/./keygen/redis for each module, two modules at a time, and
# fails at the end when one has failed. go.work joins the modules.
each   = $(MAKE) --no-print-directory -k -j 2 $(addprefix $(1)/,$(or $(2),$(MODULES)))
module = cd $*

# git refuses to read a checkout of another user, so builds don't record its version.
export GOFLAGS := $(shell go env GOFLAGS) -buildvcs=false

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help release release-check test ci prepare prepare-ci two-servers test-short test-engines soak-engines gorm-suite applications servers downloads tools servers-up servers-down unit race-short race check fmt vet bits32 staticcheck tidy repository workflows vuln bench bench-check bench-note fuzz path mutants soak cover

help: ## print this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14
	@echo
	@echo 'variables: TESTFLAGS="$(TESTFLAGS)" BENCHTIME=$(BENCHTIME) FUZZTIME=$(FUZZTIME) SOAKTIME=$(SOAKTIME)'

# Runs targets one after the other, each with its description and duration, and fails at the end
# when one has failed.
steps = began=$$SECONDS; failed=; for step in $(1); do \
		echo "== $$step: $$(sed -n "s/^$$step:.*\#\# //p" Makefile)"; start=$$SECONDS; \
		$(MAKE) --no-print-directory $$step || failed="$$failed $$step"; echo "== $$step took $$((SECONDS - start)) s"; \
	done; if [ -n "$$failed" ]; then echo "FAILED:$$failed"; exit 1; fi; echo "passed in $$((SECONDS - began)) s:"

test: ## run the tests on MySQL 9.7 and MariaDB 10.11, gofmt and go vet
	@$(call steps,prepare fmt vet unit $(if $(RACE),race-short)) \
		'the tests that need no other server than MySQL and MariaDB, gofmt, go vet$(if $(RACE),; with -race $(RACE)).' \
		'make ci adds older and newer SQL servers, Redis, ZooKeeper, etcd, a browser, all tests with -race, those of the' \
		'repository and of go-sql-driver, 386, staticcheck, go mod tidy, workflows, vulnerabilities.'

ci: ## run what "make test" leaves out: all servers, -race, other checks
	@$(call steps,prepare-ci race repository bits32 staticcheck tidy workflows vuln) 'all servers, -race and checks'

prepare: ## install the two SQL servers, download modules
	@$(MAKE) --no-print-directory -j 2 two-servers downloads

prepare-ci: ## install all servers and the tools, download modules
	@$(MAKE) --no-print-directory -j 3 servers downloads tools

two-servers:
	@bash .ci/install-servers --two

# .ci/run runs unless it has passed for the same tree, which it notes in bin/passed.
release: ## test, commit VERSION and print its tags: make release VERSION=v0.1.0
	@bash .ci/release $(VERSION)

release-check: servers ## rehearse two releases in a copy, with a module proxy in a directory
	@$(SERVERS) env SHARDKEY_RELEASES=2 go test -count=1 -v -timeout 30m $(TESTFLAGS) -run TestRehearsal ./internal/test/release

test-short: ## run the tests that need no server, without -race
	@$(call each,test-short,$(TESTED))

test-short/%:
	@$(module) && go test -short $(TESTFLAGS) ./...

# The first test that needs Vitess' vtcombo builds it. Progress is on standard error.
test-engines: servers ## test Vitess, Spider, Galera, groups, replicas and haproxy, with faults for ENGINETIME each
	@PATH=$$PATH:/usr/sbin; [ -e /usr/lib/galera/libgalera_smm.so ] && command -v haproxy >/dev/null || \
		bash .ci/install-servers galera-4 haproxy
	@export SHARDKEY_ENGINES=$(ENGINETIME) SHARDKEY_TEST_REQUIRE=1; \
		go test -count=1 -timeout 60m $(TESTFLAGS) ./internal/test/engines && \
		go test -v -count=1 -timeout 0 $(TESTFLAGS) ./internal/test/engines/chaos -subjects '$(ENGINES)'

soak-engines: ## run test-engines for SOAKTIME each: make soak-engines SOAKTIME=1h ENGINES=GALERA
	@$(MAKE) --no-print-directory test-engines ENGINETIME=$(SOAKTIME)

# gormshardkey/testdata/gormsuite.txt has the expected results.
gorm-suite: servers ## run GORM's own tests through shardkey: make gorm-suite SHARDKEY_GORM_DIR=…/gorm
	@[ -d '$(SHARDKEY_GORM_DIR)/tests' ] || { echo 'set SHARDKEY_GORM_DIR to a checkout of go-gorm/gorm'; exit 2; }
	@$(SERVERS) env SHARDKEY_GORM_DIR='$(abspath $(SHARDKEY_GORM_DIR))' SHARDKEY_TEST_REQUIRE=mysql,mariadb \
		go test -C gormshardkey -count=1 -v -timeout 60m -run 'GORMSuite|SuiteRecord' . $(TESTFLAGS)

# Each takes minutes to build. make applications TESTFLAGS='-programs xorm'
applications: servers ## run the tests of public programs and libraries through shardkey
	@$(SERVERS) env SHARDKEY_APPLICATIONS=1 SHARDKEY_TEST_REQUIRE=mysql,mariadb \
		go test -count=1 -v -timeout 120m ./internal/test/applications $(TESTFLAGS)

servers: ## install the servers for the tests (Debian, as root), or report those that are missing
	@bash .ci/install-servers

downloads: ## download the dependencies of all modules
	@$(call each,downloads)

downloads/%:
	@$(module) && go list -deps -test ./... >/dev/null

tools:
	@mkdir -p bin
	@cd internal/test/tools && GOWORK=off go build -o $(CURDIR)/bin honnef.co/go/tools/cmd/staticcheck golang.org/x/vuln/cmd/govulncheck

# The cached test results are from runs without servers.
servers-up: servers ## start servers for tests on demand, and keep them running
	@$(SERVERS) -up
	@go clean -testcache

servers-down: ## stop the servers of servers-up
	@$(SERVERS) -down

unit: ## run the tests on MySQL 9.7 and MariaDB 10.11
	@SHARDKEY_TEST_REQUIRE=mysql,mariadb $(SERVERS) $(call each,unit,$(NEWCOMERS))

# The examples' tests run the server of the quickstart, compiled by its tests.
unit/./examples: unit/./examples/quickstart

# make ci runs the tests of the repository and of go-sql-driver.
unit/%:
	@$(module) && go test -vet=off $(TESTFLAGS) $$(go list ./... | grep -vE 'internal/test/(repository|basesuite)')

race-short: ## run the short tests of the packages with goroutines, with -race
	@SHARDKEY_TEST_REQUIRE=mysql,mariadb $(SERVERS) env CGO_ENABLED=1 go test -race -short -vet=off $(TESTFLAGS) $(RACE)

# The slowest packages start first.
race: ## run the tests of all modules with -race on all servers
	@$(SERVERS) $(call each,race)

# Of the engines' module: processes that are killed, over the stores that need no engine.
race/./internal/test/engines:
	@cd $(@:race/%=%) && CGO_ENABLED=1 go test -race -vet=off -timeout 30m $(TESTFLAGS) -run TestChaos ./chaos

race/%:
	@$(module) && CGO_ENABLED=1 go test -race -vet=off -timeout 30m $(TESTFLAGS) $$(ls -d ./driver ./internal/test/{basesuite,differential} 2>/dev/null) ./...

check: fmt vet bits32 staticcheck tidy repository workflows vuln ## everything that test does but the tests of 64 bits

fmt: ## fail if gofmt -s would change a file
	@files=$$(gofmt -s -l .); [ -z "$$files" ] || { echo "run gofmt -s -w on:"; echo "$$files"; exit 1; }

vet: ## run go vet
	@$(call each,vet)

vet/%:
	@$(module) && go vet ./...

# Most amd64 machines also run programs for 386. On others, this only compiles and vets the
# tests.
bits32: ## run the short tests of the modules for programs with GOARCH=386
	@run='go test -vet=off -short $(TESTFLAGS)'; \
	if ! GOARCH=386 CGO_ENABLED=0 go test -vet=off -run '^$$' ./internal/columntype >/dev/null 2>&1; then \
		echo 'This machine runs no 386 programs: their tests are compiled, not run.'; run='go vet'; \
	fi; \
	RUN="$$run" $(call each,bits32,$(RELEASED))

bits32/%:
	@$(module) && export GOARCH=386 CGO_ENABLED=0 && $${RUN:-go vet} ./...

staticcheck: tools ## staticcheck, as staticcheck.conf says
	@$(call each,staticcheck)

staticcheck/%:
	@$(module) && CGO_ENABLED=1 GOFLAGS="$$GOFLAGS -race" $(CURDIR)/bin/staticcheck ./...

tidy: ## fail when go.mod or go.sum is not as go mod tidy leaves it; make tidy WRITE=-w writes them
	@bash .ci/tidy $(WRITE)

# race skips these tests, which take five times as long with -race.
repository: ## test the API list, imports, modules, links and sizes of the repository
	@go test -count=1 $(TESTFLAGS) ./internal/test/repository

workflows: ## actionlint, on the workflows of GitHub
	@cd internal/test/tools && GOWORK=off go build -o $(CURDIR)/bin/actionlint github.com/rhysd/actionlint/cmd/actionlint
	@bin/actionlint -shellcheck= -pyflakes= .github/workflows/*.yml

vuln: tools ## govulncheck, where its database can be reached
	@$(call each,vuln)

vuln/%:
	@$(module) && bash $(CURDIR)/.ci/vuln $(CURDIR)/bin/govulncheck

bench: servers ## run the benchmarks of the driver, generators, INSERTs and growth
	@$(SERVERS) go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(TESTFLAGS) ./... ./keygen/redis/...
	@$(SERVERS) go test -C bench -run '^$$' -bench . -benchtime $(BENCHTIME) $(TESTFLAGS)
	@go run -C bench ./inserts

# After a change that improves a ratio: make bench-note
bench-check: servers ## fail if a ratio of INSERTs differs from bench/figures.jsonl
	@go run -C bench ./inserts -rounds 1000 -check figures.jsonl

bench-note: servers ## measure these ratios on an idle machine, and write them to the file and to the pages
	@go run -C bench ./inserts -rounds 1000 -note figures.jsonl
	@go test ./bench/inserts -run Pages -update

fuzz: ## run each fuzz target for FUZZTIME
	@FUZZTIME=$(FUZZTIME) bash .ci/fuzz

path: ## print the functions that a warm INSERT calls; fail if they are too many
	@go run ./internal/test/repository/path

mutants: ## change the code of MUTATED; fail if no test finds a change that isn't listed with a reason
	@go run ./internal/test/repository/mutants $(MUTATED)

# SHARDKEY_SOAK is the duration of some tests. Their packages run one after another.
soak: servers ## test for SOAKTIME each: keys of processes that are killed, and generated statements
	@$(SERVERS) env SHARDKEY_SOAK=$(SOAKTIME) go test -v -count=1 -p 1 -timeout 0 $(TESTFLAGS) \
		$$(grep -rl --include='*_test.go' SHARDKEY_SOAK . | xargs -n 1 dirname | sort -u)

cover: servers ## write the coverage of the root module to bin/cover.html
	@mkdir -p bin
	@$(SERVERS) go test -coverpkg=./... -coverprofile=bin/cover.out $(TESTFLAGS) ./...
	@go tool cover -html=bin/cover.out -o bin/cover.html
	@go tool cover -func=bin/cover.out | tail -1
