"""The values of brokerage: needs of a task, the snapshot of the grid, refusal codes, verdicts. Pure.

Imports `jedisite.refusals` and words. Start at `site_view.py`, `snapshot.py` and `needs.py`.
"""
