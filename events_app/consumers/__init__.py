"""Jobs that share ranges: copies of a job, and which job owns the files of a jobset.

Imports `events_app.rules`, the doors of `tasks_app.lifecycle` and the columns of new jobs. Start at `copying.py`.
"""
