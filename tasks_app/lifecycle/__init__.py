"""The doors: states of tasks, jobs and files change here (files: see `tests/test_doors.py`); claims with fences; the outbox.

Imports `domain`, `params`, `models`, `ddm`. Start at `task_moves.py` and `job_moves.py`; beside that, `job_handout.py`,
`job_reports.py` and `job_ends.py` have the statements of the hot paths.
"""
