"""Which files of its inputs a task gets, and when: selection, growing and changing datasets, containers, replicas.

Imports the floors below it. Start at `feed.py`; `rules/` decides.
"""
