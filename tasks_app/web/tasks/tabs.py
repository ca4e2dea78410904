"""The tabs of a task: further pages about it, each with an address of its own."""

from __future__ import annotations

from typing import Final

TABS: Final = (
    # (name of the address behind "dashboard:", title)
    ("task", "Task"),
    ("task-why", "Why"),
    ("task-timeline", "Timeline"),
    ("task-jobs", "Jobs"),
    ("task-inputs", "Files"),
    ("task-errors", "Errors"),
    ("task-sites", "Sites"),
    ("task-scouts", "Scouts"),
    ("task-flow", "Flow"),
    ("task-profile", "Profile"),
    ("task-params", "Parameters"),
    ("task-audit", "Audit"),
)
