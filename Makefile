.PHONY: setup check test docs kernel sanitize coverage fuzz bench

# The package in place, with every extra and the tools, at the versions that are tested.
setup:
	python -m pip install --upgrade 'pip>=25.1'
	python -m pip install -c constraints.txt meson-python meson ninja
	python -m pip install -c constraints.txt --no-build-isolation --editable '.[test,plot,parquet,dask,bench,peers,browser,docs]' --group dev

check:
	ruff format --check .
	ruff check .
	mypy
	python tools/lint_imports.py

test:
	pytest

# The site, into build/site. Warnings are errors, and so are links of the built pages that lead nowhere. What its blocks
# print is compared by tests/docs/test_docs.py.
docs:
	python -m sphinx -q -n -W --keep-going docs build/site
	python tools/check_site.py build/site

# The compiled kernel, left beside its Python files for work in the tree.
kernel:
	test -d build/kernel || meson setup build/kernel --buildtype=release
	meson compile -C build/kernel
	cp build/kernel/src/sobolev_novelty/kernels/native/_native*.so src/sobolev_novelty/kernels/

# The kernel's tests under AddressSanitizer and UndefinedBehaviorSanitizer, its threads under ThreadSanitizer.
sanitize:
	tools/sanitize.sh
	tools/sanitize.sh thread

# Lines and branches of the C code that its tests reach. Needs gcovr.
coverage:
	tools/coverage.sh

# Random changes of valid inputs, for FUZZ_SECONDS each (an hour: make fuzz FUZZ_SECONDS=3600); seeds by date, or FUZZ_SEED.
FUZZ_SECONDS ?= 60
fuzz:
	python tests/fuzz/run.py --seconds $(FUZZ_SECONDS) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED)) $(foreach target,$(FUZZ_TARGETS),--target $(target))

bench:
	python -m benchmarks.run
