"""Speed of the kernels against other packages: ``python -m benchmarks.run``."""
