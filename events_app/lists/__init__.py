"""What the list of event ranges shows and is filtered by: one definition for page, API and export, and the resource itself.

Imports `events_app.models` and the floors below. Start at `range_columns.py`.
"""
