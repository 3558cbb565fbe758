"""Linear algebra of signatures: projections, least squares, tangents."""
