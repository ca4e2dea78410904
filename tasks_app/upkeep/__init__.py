"""What watchdogs decide and do: overdue jobs, limits of users, withheld and pending tasks, overload, queues to be
filled, what is kept no longer.

Imports the floors below it. Start at `expiring.py` and `overdue.py`; `rules/` decides.
"""
