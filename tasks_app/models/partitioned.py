"""Which tables of tasks are partitioned, and for how many months those of history are kept."""

from __future__ import annotations

from jedisite.database import partitions
from jedisite.database.partitions import Monthly, Numbered


def register() -> None:
    """Have partitions made ahead for these tables, and old ones dropped."""
    partitions.NUMBERED.append(Numbered("jedi_dataset_contents", sequence="jedi_tasks_id_seq"))
    partitions.MONTHLY.extend(
        [
            Monthly("tasks_statuslog", keep_months=3),
            Monthly("jobs_statuslog", keep_months=3),
            Monthly("jedi_job_retry_history", keep_months=3),
            Monthly("job_retry_notes", keep_months=3),
            Monthly("jobs_archive", keep_months=None),
        ]
    )
