"""What Django does not say about PostgreSQL: cursors of hot paths, COPY, partitions, limits of time, faults.

Imports `vocabulary` only. Start at `sql.py`.
"""
