"""What rows and floats can resolve: waves between rows, rounding, poles."""
