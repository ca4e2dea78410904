"""Data that moves: rules, requests, and the mover that serves them by copying files between local storages.

Imports `lifecycle`, `ddm`, `models`, `configured`, `domain`; what waits for data stands in the rooms above. How to have data
moved, and to go on when it is there: `requesting.py`. Decisions are in `rules/`, which is pure.
"""
