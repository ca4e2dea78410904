"""From the submitted parameters to the columns, datasets and templates of a task. Pure.

Imports `params` and `domain`. Start at `base.py`, which chooses the refiner.
"""
