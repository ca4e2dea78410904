"""What needs somebody. `reading` asks the database for facts, `rules` judges them, `keeping` stores what was found.

Imports the floors below it. Start at `rules/findings.py`.
"""
