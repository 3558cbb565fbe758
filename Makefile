.PHONY: kernel sanitize bench

# The compiled kernel, left beside its Python files for work in the tree.
kernel:
	test -d build/kernel || meson setup build/kernel --buildtype=release
	meson compile -C build/kernel
	cp build/kernel/src/sobolev_novelty/kernels/native/_native*.so src/sobolev_novelty/kernels/

# The kernel's tests under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize:
	tools/sanitize.sh

bench:
	python -m benchmarks.run
