"""Simulation of a grid: the real decisions on simulated sites, pilots and time, to see what shares and priorities get."""
