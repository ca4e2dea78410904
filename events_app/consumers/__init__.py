"""Consumers of ranges: what new jobs of event service get, copies of a job, and which job owns the files of a jobset.

Imports `events_app.rules` and `lifecycle`, the doors of `tasks_app.lifecycle` and the columns of new jobs. Start at `storing.py`
and `copying.py`.
"""
