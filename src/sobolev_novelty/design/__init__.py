"""The rows to measure next: where equations that fit the rows at hand would differ most."""
