"""With what jobs that were told to stop were killed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from tasks_app.domain.killcodes import KillCode, killed_with


def kill_codes(cursor: psycopg.Cursor[Any], jobs: Sequence[int]) -> dict[int, KillCode]:
    """The kill code of each of these jobs that was told to stop."""
    cursor.execute(
        "SELECT pandaid, taskbuffererrorcode FROM jobs WHERE pandaid = ANY(%s) AND commandtopilot = 'tobekilled'",
        [jobs],
    )
    return {job: killed_with(error) for job, error in cursor}
