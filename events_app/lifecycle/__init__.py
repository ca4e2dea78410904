"""The door for the states of ranges: the statements that insert blocks and move them, and where their outputs lie.

Imports `events_app.rules` and the database's tools. Start at `range_moves.py`.
"""
