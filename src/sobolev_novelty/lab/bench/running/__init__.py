"""Experiments: jobs, processes, stores, methods."""
