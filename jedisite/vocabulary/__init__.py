"""Words, roles, patterns and names: plain values and functions on them. Pure.

Imports nothing of the project. Start at `roles.py` (who may do what) and `words.py` (sentences).
"""
