# Everything a developer does here. `make` prints the list.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
GO ?= go
# How long each fuzz target runs, and what the benchmark against the peer is asked to do.
FUZZTIME ?= 20s
PEERFLAGS ?=
# Packages whose tests need no server. The integration tests do.
UNIT := $$($(GO) list ./... | grep -v '/integration$$')
# Packages where goroutines share memory.
RACE := ./internal/... ./statestore/... ./processor ./processor/control ./processor/joblog ./cmd/...

.PHONY: help build demo test lint bench integration crash bench-peer fuzz clean

help: ## print the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the program, as bin/processor
	$(GO) build -trimpath -o bin/processor ./cmd/processor

demo: build ## run a pipeline over 336,776 real flights on an embedded broker and print what it found
	$(GO) run ./examples/demo

test: ## vet, and all tests that need no server
	$(GO) vet ./...
	$(GO) test -count=1 -timeout 10m $(UNIT)
	$(GO) test -race -short -count=1 -timeout 10m $(RACE)

lint: ## formatting, vet, staticcheck, and the rules of internal/lint
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (gofmt -w them): $$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	$(GO) test -count=1 ./internal/lint

bench: ## microbenchmarks of the record path
	$(GO) test -run '^$$' -bench . -benchmem -timeout 20m $$($(GO) list ./... | grep -v '/integration$$')

integration: ## promises tested from outside, against a real Kafka (KAFKA_BROKERS, or a script named by KAFKA_SERVER_SCRIPT)
	$(GO) test -count=1 -timeout 20m ./integration/

crash: ## the faults alone: kills, pauses and zombies under load, many rounds
	$(GO) test -count=3 -timeout 60m -run 'Kill|Crash|Zombie|Restart|Fenc' ./integration/ ./internal/embedded/

bench-peer: build ## throughput, latency and recovery beside Kafka Streams doing the same work
	$(GO) run ./benchmarks/peer $(PEERFLAGS)

fuzz: ## every fuzz target for FUZZTIME
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

clean: ## remove what was built and the local data folders
	rm -rf bin .processor coverage.out
