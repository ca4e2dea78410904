"""The first jobs of a task: how many, what they measure, and the verdict on them.

Imports the floors below it. Start at `scouting.py`; `rules/` decides.
"""
