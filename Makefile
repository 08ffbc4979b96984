# Makefile - the commands of daily work; each sets up what it needs (`make help`).
#
# SPDX-License-Identifier: Apache-2.0
.PHONY: help run test quick soak bench plots docs site reference package format clean
jobs := $(shell nproc)

help:
	@echo "make run        the tour of what weft does; EXAMPLE=name runs one of examples/"
	@echo "make test       test every preset: dev, asan, tsan in full, the others in brief"
	@echo "make quick      dev's tests in brief, within 3 minutes once it is built"
	@echo "make soak       every preset and the matrix of compilers at full counts; takes hours"
	@echo "make bench      compare with the peers; CASE=name only that case, QUICK=1 within 3 minutes"
	@echo "                a case; without QUICK it writes bench/results, tables and plots anew"
	@echo "make plots      draw the plots again from what is in bench/results"
	@echo "make docs       put the snippets of docs/ where their sources are newer"
	@echo "make site       docs/ as a site, in build/site"
	@echo "make reference  the reference of the headers, in build/reference"
	@echo "make package    a Debian package, in build/package"
	@echo "make format     format the sources with clang-format"
	@echo "make clean      remove build/"
	@echo
	@echo "Every program under tools/, examples/ and bench/ knows --help."

# EXAMPLE may have arguments: EXAMPLE="tour ring".
EXAMPLE ?= tour
run:
	@tools/setup run
	@if [ ! -f examples/$(firstword $(EXAMPLE)).cpp ]; then \
		echo "no examples/$(firstword $(EXAMPLE)).cpp; there are:"; \
		ls examples | sed -n 's/\.cpp$$//p' | xargs; exit 2; fi
	@cmake --preset release --log-level=NOTICE -DWEFT_TESTS=OFF >/dev/null
	@cmake --build --preset release --parallel $(jobs) \
		--target $(if $(filter tour,$(EXAMPLE)),examples,example_$(firstword $(EXAMPLE)))
	@build/release/examples/$(EXAMPLE)

test:
	@tools/test

quick:
	@tools/test --quick

soak:
	@tools/soak

# CASE may name several; ROUNDS sets their number; PEERS=yes installs missing peers without asking.
bench:
	@tools/setup run bench
	@tools/setup --offer=$(PEERS) peers
	@bench/run build/bench $(CASE) $(if $(QUICK),--brief) $(if $(ROUNDS),--rounds $(ROUNDS))

plots:
	@bench/plot

docs:
	@tools/snippets --write

site:
	@tools/setup site
	@mkdocs build --quiet --strict

reference:
	@tools/setup reference
	@tools/check_reference --keep

package:
	@tools/setup run package
	@cmake --preset release --log-level=NOTICE -DWEFT_TESTS=OFF >/dev/null
	@cmake --build --preset release --parallel $(jobs) --target weft
	@cd build/release && cpack -G DEB -B ../package

format:
	@tools/setup format
	@find include src tests examples bench docs \( -name '*.cpp' -o -name '*.hpp' \) 2>/dev/null \
		| xargs -r clang-format -i

clean:
	rm -rf build
