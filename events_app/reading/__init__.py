"""Counts of event ranges for pages, gates and rules: grouped statements over indexes, none of which reads more rows than it says.

Imports `events_app.rules` and the tables. Start at `range_counts.py`.
"""
