"""A benchmark of planted terms."""
