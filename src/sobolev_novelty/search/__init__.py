"""The search: engines that propose forms, the loop that fits and judges them, the regressor."""
