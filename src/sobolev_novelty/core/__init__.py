"""Values that everything shares: expressions, operators, samples, numbers, arguments."""
