"""Ends of jobs of event service: what becomes of a consumer, of its jobset, and of what a merge job was to merge.

Imports `events_app.consumers`, the door for ranges, and the hook of `tasks_app.outcomes`. Start at `end_hook.py`.
"""
