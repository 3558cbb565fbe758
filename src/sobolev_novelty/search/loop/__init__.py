"""The loop of a search, its front, and its memory of what was met."""
