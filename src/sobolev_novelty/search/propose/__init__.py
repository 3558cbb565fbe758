"""Where forms come from beside the engine."""
