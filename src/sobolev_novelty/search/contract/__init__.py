"""What engine and search agree on: problems, candidates, options, names of engines."""
