"""Tasks, suites, runs, stores and tables."""
