"""Terms of a closure: data, tensors, selection."""
