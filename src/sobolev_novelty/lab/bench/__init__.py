"""The benchmark: tasks, suites, a runner with a store, and every table and figure made from its rows."""
