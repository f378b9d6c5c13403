# The front door. Every target first makes sure that what it needs is installed (scripts/deps), then
# builds through the presets of CMakePresets.json. CMake alone does as well: see docs/building.md.

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
COVERAGE_LINES ?= 90
RESERVE ?=
SIZE ?=
TRACES ?=

export DESTDIR FUZZ_SECONDS COVERAGE_LINES RESERVE SIZE TRACES

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench peers fuzz soak coverage install docs gpu-test clean

demo: ## load a model into regular and into huge pages and compare (RESERVE=1 sets pages aside)
	@scripts/deps build
	@scripts/build release
	@scripts/demo

test: ## build with asserts and run every test
	@scripts/deps build test
	@scripts/build dev
	@scripts/test dev

lint: ## check formatting, floors, headers and scripts; run clang-tidy and cppcheck
	@scripts/deps build lint
	@scripts/lint

format: ## format every C file in place
	@scripts/deps lint
	@scripts/format

bench: ## run all benchmarks on this machine (SIZE=1GiB, of the models they load)
	@scripts/deps build
	@scripts/build release
	@scripts/bench

peers: ## run other allocators beside ours, in one table (TRACES=DIRECTORY adds traces)
	@scripts/deps build peers
	@scripts/peers

fuzz: ## run each fuzz target for FUZZ_SECONDS (60)
	@scripts/deps build test fuzz
	@scripts/build fuzz
	@scripts/fuzz

soak: ## ten million random operations on pools, checked against a map of owners
	@scripts/deps build test
	@scripts/build dev
	@scripts/soak

coverage: ## run the tests instrumented; fail below COVERAGE_LINES (90) per cent of src/
	@scripts/deps build test coverage
	@scripts/build coverage
	@scripts/coverage

install: ## install library, headers and command under PREFIX (/usr/local), honouring DESTDIR
	@scripts/deps build
	@scripts/build release -DCMAKE_INSTALL_PREFIX="$(PREFIX)"
	@scripts/install

docs: ## build the manual as HTML in build/docs/html
	@scripts/deps build docs
	@scripts/docs

gpu-test: ## run the tests that need a GPU, measure it, and keep the figures in bench/results
	@scripts/deps build test
	@scripts/build dev
	@scripts/gpu-test
	@scripts/build release
	@scripts/gpu-bench

clean: ## remove everything that was built
	rm -rf build

help: ## print this list
	@awk -F ': ## ' '/^[a-z-]+: ## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile
