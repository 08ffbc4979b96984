# Makefile - the commands of daily work; each sets up what it needs (`make help`).
#
# SPDX-License-Identifier: Apache-2.0
.PHONY: help run test quick soak bench format clean
jobs := $(shell nproc)

help:
	@echo "make run      build weft and run the tour of what it does"
	@echo "make test     test every preset: dev, asan, tsan in full, the others in brief"
	@echo "make quick    test the dev preset only"
	@echo "make soak     every preset and the matrix of compilers at full counts; takes hours"
	@echo "make bench    build the benchmarks and run the comparisons"
	@echo "make format   format the sources with clang-format"
	@echo "make clean    remove build/"

run:
	@tools/setup run
	@cmake --preset release --log-level=NOTICE -DWEFT_TESTS=OFF >/dev/null
	@cmake --build --preset release --parallel $(jobs) --target example_tour
	@build/release/examples/tour

test:
	@tools/test

quick:
	@tools/test dev

soak:
	@tools/soak

bench:
	@tools/setup run test bench
	@cmake --preset bench --log-level=NOTICE >/dev/null
	@cmake --build --preset bench --parallel $(jobs)
	@if [ -x bench/run ]; then bench/run build/bench; \
	else echo "The benchmarks are in build/bench/bench."; fi

format:
	@tools/setup format
	@find include src tests examples bench \( -name '*.cpp' -o -name '*.hpp' \) 2>/dev/null \
		| xargs -r clang-format -i

clean:
	rm -rf build
