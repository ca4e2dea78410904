"""The doors: states of tasks, jobs, datasets and files change here; claims with fences; the outbox.

Imports `domain`, `params`, `models`, `ddm`. Start at `task_moves.py`, `job_moves.py`, `dataset_moves.py` and
`file_moves.py`; beside these, `job_handout.py`, `job_reports.py`, `job_ends.py`, `file_uses.py` and `file_ends.py` have
the statements of the hot paths.
"""
