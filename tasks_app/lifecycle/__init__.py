"""The doors: states of tasks, jobs and files change here only; claims with fences; the outbox.

Imports `domain`, `params`, `models`, `ddm`. Start at `task_moves.py` and `job_moves.py`.
"""
