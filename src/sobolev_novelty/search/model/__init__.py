"""The regressor: arguments, fit, files, display."""
