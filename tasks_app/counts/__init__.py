"""Numbers of jobs that brokers and pages read, and samples over time.

Imports `domain` and `models`. Start at `statistics.py`.
"""
