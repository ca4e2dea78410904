"""The invariants of the flow as SQL: each is a name, a sentence, and a query that returns the rows that break it.

Imports `domain`. Start at `flow_invariants.py`; `manage.py audit` runs them.
"""
