"""What watch dogs decide and do: overdue jobs, caps, withheld tasks, overload.

Imports the floors below it. Start at `expiring.py` and `overdue.py`; `rules/` decides.
"""
