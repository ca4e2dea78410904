"""The end of a merge job: what it merged is merged, or is merged later, or is thrown away."""

from __future__ import annotations

from collections import Counter
from typing import Final

from events_app.ends import jobset_lines
from events_app.ends.jobset_facts import files_of
from events_app.ends.jobset_turn import Turn
from events_app.lifecycle import jobset_ranges
from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.domain.states import JobStatus
from tasks_app.outcomes.end_hooks import Ending, EventJob
from tasks_app.outcomes.job_outcome import Outcome

UNREADABLE: Final = frozenset({1103, 1145, 1171, 1175})
"""Errors of pilots: an input is not there, or is not what it should be."""


def end(turn: Turn, ending: Ending) -> Outcome:
    """The consumers that wait for this merge are to be ended; the file is booked by the end of the merge job, as of any job.

    Of a merge that failed the events are kept where the task says so: the next jobset of the files is merged with them.
    """
    said, job = ending
    files = [file.file_id for file in files_of(turn.cursor, job.task_id, job.job_id)]
    if said.status == JobStatus.FINISHED:
        if turn.rules[job.task_id].accepts_partial:
            lost = jobset_ranges.given_up(turn.cursor, job.task_id, job.jobset_id, files)
            turn.unused.setdefault(job.task_id, Counter()).update(lost)
        workers = jobset_ranges.merge(turn.cursor, job.task_id, files)
        turn.tell_merging(job.task_id, job.jobset_id, workers, jobset_lines.MERGED, job.job_id)
        return said
    if said.status == JobStatus.FAILED:
        jobset_ranges.corrupt(turn.cursor, job.task_id, files, _unreadable_zips(turn, job))
    if not turn.rules[job.task_id].keeps_events:
        jobset_ranges.discard(turn.cursor, job.task_id, files)
        turn.tell_merging(job.task_id, job.jobset_id, (), jobset_lines.NOT_MERGED, job.job_id)
    return said


def _unreadable_zips(turn: Turn, job: EventJob) -> list[int]:
    """Zip files of consumers that the job's pilot has reported as corrupted, or that it names in an error of that kind."""
    turn.cursor.execute(
        f"""SELECT z.row_id FROM job_files r JOIN job_files z ON z.lfn = r.lfn AND z.type = 'zipoutput' AND z.row_id IN (
                  SELECT e.ziprow_id FROM jedi_events e WHERE e.jeditaskid = %(task)s AND e.fileid IN (
                         SELECT f.fileid FROM job_files f WHERE f.pandaid = %(job)s AND f.type IN ('input', 'pseudo_input')))
            WHERE r.pandaid = %(job)s AND r.type = 'zipinput' AND (r.status = '{JobFileStatus.CORRUPTED}'
                  OR strpos(%(diag)s, r.lfn) > 0)""",  # noqa: S608 - a constant of ours
        {
            "task": job.task_id,
            "job": job.job_id,
            "diag": job.pilot_diag if job.pilot_error in UNREADABLE else "",
        },
    )
    return [row for (row,) in turn.cursor.fetchall()]
