"""Flows: meshes, the momentum equation, our solver and OpenFOAM."""
