"""Equations of motion: trajectories in, one equation per state out, checked by integrating them."""
