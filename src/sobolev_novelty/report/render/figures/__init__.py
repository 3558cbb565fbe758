"""Figures as SVG, and in notebooks."""
