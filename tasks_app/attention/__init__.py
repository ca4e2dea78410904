"""Items that need attention. `reading` reads the facts, `rules` judges them, `keeping` stores the findings.

Imports the floors below it. Start at `rules/findings.py`.
"""
