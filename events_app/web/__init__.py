"""Pages on event ranges: the tab of a task, the part of a job's page, the section of all tasks with event service.

Imports the floors below it. Start at `task_ranges.py`.
"""
