"""What watchdogs decide and do: overdue jobs, limits of users, withheld tasks, overload, queues to be filled.

Imports the floors below it. Start at `expiring.py` and `overdue.py`; `rules/` decides.
"""
