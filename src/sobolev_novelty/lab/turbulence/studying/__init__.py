"""Studies of closures: runs, stores, tables, figures."""
