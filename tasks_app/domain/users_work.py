"""Which tasks and jobs are users' own work: caps on users count these, and their priorities fall with their number. Pure.

Analysis, and tests, which every user may submit. Tests of the type `prod` need the production right: they are those of
the site itself, and count for nobody.
"""

from __future__ import annotations

from typing import Final

from tasks_app.domain.source_labels import ANALYSIS_LABELS

TEST: Final = "test"
PRODUCTION_TYPE: Final = "prod"
_LABELS = ", ".join(f"'{label}'" for label in sorted(ANALYSIS_LABELS))


def is_users(label: str | None, task_type: str | None) -> bool:
    """Whether a task of that prodSourceLabel and taskType is."""
    return label in ANALYSIS_LABELS or (label == TEST and (task_type or "").lower() != PRODUCTION_TYPE)


def users_tasks(row: str) -> str:
    """The same as SQL on a row of jedi_tasks. It is never NULL."""
    label = f"coalesce({row}.prodsourcelabel, '')"
    return (
        f"({label} IN ({_LABELS}) OR {label} = '{TEST}' AND lower(coalesce({row}.tasktype, '')) <> '{PRODUCTION_TYPE}')"
    )


def users_jobs(row: str) -> str:
    """The same as SQL on a row of jobs. Of tests alone it looks at their tasks: jobs bear no type."""
    return f"""({row}.prodsourcelabel IN ({_LABELS}) OR {row}.prodsourcelabel = '{TEST}' AND EXISTS (
        SELECT 1 FROM jedi_tasks tested WHERE tested.jeditaskid = {row}.jeditaskid AND {users_tasks("tested")}))"""  # noqa: S608
