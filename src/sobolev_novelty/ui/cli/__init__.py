"""The command line ``sobolev``."""
