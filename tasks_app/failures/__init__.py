"""The books of failed jobs: their kinds, their counts by the hour, and nodes that fail everything.

Imports `domain` and `models`. Start at `booking.py`.
"""
