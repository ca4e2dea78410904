"""The invariants of ranges and of the jobs that process them, as SQL: `tasks_app.audit` runs them with its own.

Imports `events_app.rules`. Start at `range_invariants.py`.
"""
