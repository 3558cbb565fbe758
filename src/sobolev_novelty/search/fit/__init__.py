"""Forms, and the constants that are fitted in them."""
