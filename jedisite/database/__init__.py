"""PostgreSQL features beyond Django: cursors of hot paths, COPY, partitions, time limits, faults.

Imports `vocabulary` only. Start at `sql.py`.
"""
