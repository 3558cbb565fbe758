"""What re-makes the paper and measures: nothing outside imports it."""
