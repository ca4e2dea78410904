"""The grid in the database: what describes it, and how it becomes the snapshot that brokers read.

Imports the pure floors and `models`. Start at `repository.py`; queues change status in `queue_status.py` only.
"""
