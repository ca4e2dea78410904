"""A grid in a box: the real decisions on simulated sites, pilots and time, to see what shares and priorities get."""
