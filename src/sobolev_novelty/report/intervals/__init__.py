"""How well rows determine the constants of an equation: fits, profiles, intervals, bands."""
