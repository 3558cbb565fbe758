"""Whether a law was found, and what became of it where it was not."""
