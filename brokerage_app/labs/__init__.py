"""Grids that are made up, of any size, for measuring brokers and for trying them out.

Imports all floors; only labs, commands and tests import it. Start at `made_up_grid.py`.
"""
