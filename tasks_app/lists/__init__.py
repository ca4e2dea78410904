"""Columns and filters of all lists: one definition for page, API and export.

Imports the floors below it. Start at `task_columns.py` and `filtersets.py`.
"""
