"""What rows say of an equation: a report, its words, intervals, pages."""
