"""Tasks and suites of the benchmarks."""
