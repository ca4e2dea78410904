"""The agents of tasks. Each file holds one; `register()` puts them all into the table of agents."""

from __future__ import annotations


def register() -> None:
    from jedisite import partitions

    partitions.BY_TASK.append("jedi_dataset_contents")
    for table, months in (("tasks_statuslog", 3), ("jobs_statuslog", 3), ("jedi_job_retry_history", 3), ("jobs_archive", None)):
        partitions.MONTHLY.append(partitions.Monthly(table, months))
