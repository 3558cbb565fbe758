"""What re-makes the paper and measures: only ui imports it."""
