# Tallystick. `make dev` runs a development network, `make test` runs all tests;
# CONTRIBUTING.md has the rest.

GO     ?= go
DATA   ?= ./dev-data
LISTEN ?= 127.0.0.1:6432
FLAGS  ?=
# How long `make fuzz` spends on each fuzz test, and `make bench` on each benchmark.
FUZZTIME  ?= 30s
BENCHTIME ?= 1s
# How many clusters of orderers `make soak` simulates, beginning with which seed.
SOAK_SEEDS ?= 100000
SOAK_FIRST ?= 1
# How many chains of 1000 blocks it drives with several nodes.
SOAK_CHAINS ?= 100

BIN := bin/tallystick

.DEFAULT_GOAL := help
.PHONY: help dev build static test packages lint fuzz bench conformance soak clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dev: build ## a development network on LISTEN with its data in DATA; FLAGS are added
	@$(BIN) dev --data $(DATA) --listen $(LISTEN) $(FLAGS)

build: ## the program in bin/
	$(GO) build -o $(BIN) ./cmd/tallystick

static: ## the program in bin/ without shared libraries
	$(GO) build -tags netgo,osusergo -ldflags '-linkmode external -extldflags "-static"' -o $(BIN) ./cmd/tallystick

test: packages ## all tests; as root on Debian it installs the packages that they need
	$(GO) test -count=1 -timeout 10m ./...

packages:
	@.ci/packages

lint: ## gofmt, go vet, staticcheck
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

fuzz: ## every fuzz test for FUZZTIME
	@set -e; grep -rH --include='*_test.go' '^func Fuzz' . | \
	sed -E 's|^(.*)/[^/]+:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort | \
	while read -r dir test; do \
		echo "$$dir $$test"; \
		$(GO) test -run '^$$' -fuzz "^$$test\$$" -fuzztime $(FUZZTIME) $$dir; \
	done

bench: ## every benchmark for BENCHTIME
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 1h ./...

conformance: packages ## compares with suites that others wrote; writes conformance/RESULTS.md
	$(GO) run ./conformance/logictest
	$(GO) run ./conformance/regress -v

soak: ## hours of what `make test` runs for seconds
	TALLYSTICK_SIM_SEEDS=$(SOAK_SEEDS) TALLYSTICK_SIM_FIRST=$(SOAK_FIRST) \
		$(GO) test -count=1 -timeout 48h -v -run 'TestPBFT' ./ordering/sim
	$(GO) test -count=1 -timeout 48h -run TestMutants ./ordering/pbft -mutant-first 1 -mutant-seeds 5000
	TALLYSTICK_SOAK=$(SOAK_CHAINS) TALLYSTICK_SEED=$(SOAK_FIRST) $(GO) test -count=1 -timeout 24h -run 'TestSimulate$$' -v ./server
	TALLYSTICK_SOAK_BLOCKS=10000 $(GO) test -count=1 -timeout 24h -run '^TestRandomContracts$$' -v ./server/chain
	TALLYSTICK_NET_SOAK=10m $(GO) test -count=1 -timeout 1h -run '^TestNetwork(PBFT)?$$' -v ./cmd/tallystick

clean: ## removes what was built, not the data of `make dev`
	rm -rf bin
