"""Files into jobs. Pure.

Imports `params` and `domain`. Start at `splitter.py`.
"""
