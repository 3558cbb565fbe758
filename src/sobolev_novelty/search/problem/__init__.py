"""From the user's table to the problem of a search: rows, units, limits."""
