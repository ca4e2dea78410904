"""The end of a fine-grained job: what it has finished stays, and its file comes back while ranges are left.

Outputs of ranges that our pilot stored in zip files are merged when none is left; a job that another pilot ran has stored its
own.
"""

from __future__ import annotations

from dataclasses import replace

from events_app.consumers.copying import hand_over
from events_app.ends import merge_making
from events_app.ends.consumer_end import NOT_NEEDED, told
from events_app.ends.jobset_facts import files_of
from events_app.ends.jobset_turn import Turn
from events_app.ends.merge_inputs import zips_to_merge
from events_app.lifecycle import jobset_ranges
from events_app.lifecycle.range_ends import complete_files, finished_and_ready, give_back, give_up_rest
from events_app.rules.fine_ends import FineEnd, fine_end
from jedisite.database.sql import numbers
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import JobStatus
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.outcomes.end_hooks import Ending, EventJob
from tasks_app.outcomes.job_outcome import Outcome


def end(turn: Turn, ending: Ending) -> Outcome:
    """End a fine-grained job that was not killed. Its file is finished when no range is left, or by the merge job that
    follows, and else ready again."""
    said, job = ending
    of_job = files_of(turn.cursor, job.task_id, job.job_id)
    if job.job_id not in {file.owner for file in of_job}:
        return told(said, job, NOT_NEEDED, "its file was given to another job")
    files = [file.file_id for file in of_job]
    give_back(turn.cursor, job.task_id, job.job_id)
    finished, left = finished_and_ready(turn.cursor, job.task_id, job.job_id, job.jobset_id)
    became = fine_end(finished, left)
    if became is FineEnd.DONE and not _conclude(turn, ending, files):
        became = FineEnd.PARTIAL
    if became is not FineEnd.DONE and _is_last(turn, said, files):
        _keep_what_is_finished(turn, ending, files)
    if became is FineEnd.STUMBLE:
        stored = tuple(pair for pair in said.stored if pair[0].type in LOG_TYPES)
        sentence = said.diag or f"none of its {plural(left, 'range')} was finished"
        return replace(said, sub_status=became.value, stored=stored, diag=sentence, inputs_again=True)
    return replace(
        said,
        status=JobStatus.FINISHED,
        sub_status=became.value,
        component="",
        code=0,
        diag="",
        inputs_again=became is FineEnd.PARTIAL,
    )


_LAST = """
SELECT coalesce(bool_or(coalesce(attemptnr, 0) + 1 >= maxattempt OR coalesce(failedattempt, 0) + %(failed)s::int >= maxfailure),
                false)
  FROM jedi_dataset_contents WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[])
"""


def _is_last(turn: Turn, said: Outcome, files: list[int]) -> bool:
    """Whether its files have no attempt left after the end of this job."""
    failed = int(said.status == JobStatus.FAILED)
    turn.cursor.execute(_LAST, {"task": said.task_id, "files": numbers(files), "failed": failed})
    row = turn.cursor.fetchone()
    return bool(row and row[0]) and not said.spares_attempt


def _keep_what_is_finished(turn: Turn, ending: Ending, files: list[int]) -> None:
    """No job of its files follows: a merge job has them, and makes an output of the events that are finished.

    Outputs that jobs have stored themselves count as they are; what lies in zip files beside them cannot become a part of them.
    """
    said, job = ending
    complete_files(turn.cursor, job.task_id, files)
    stores = any(pair[0].type not in LOG_TYPES for pair in said.stored)
    zips = zips_to_merge(turn.cursor, job.task_id, files, but=job.job_id if stores else None)
    if not zips or stores:
        jobset_ranges.corrupt(turn.cursor, job.task_id, files, zips)
        jobset_ranges.merge(turn.cursor, job.task_id, files)
        return
    give_up_rest(turn.cursor, job.task_id, job.jobset_id)
    _merge(turn, job, files, f"its files have no attempt left: what is finished of jobset {job.jobset_id} is merged")


def _conclude(turn: Turn, ending: Ending, files: list[int]) -> bool:
    """All ranges of the files are finished: a merge job is made, where there is something to merge.

    False where the job has stored its own outputs, so that what earlier ones have left in zip files cannot become a part of
    them: that is processed again.
    """
    said, job = ending
    complete_files(turn.cursor, job.task_id, files)
    stores = any(pair[0].type not in LOG_TYPES for pair in said.stored)
    zips = zips_to_merge(turn.cursor, job.task_id, files, but=job.job_id if stores else None)
    if zips and stores:
        jobset_ranges.corrupt(turn.cursor, job.task_id, files, zips)
        return False
    if not zips:
        jobset_ranges.merge(turn.cursor, job.task_id, files)
        return True
    _merge(turn, job, files, f"all ranges of jobset {job.jobset_id} are finished")
    return True


def _merge(turn: Turn, job: EventJob, files: list[int], reason: str) -> None:
    copy = merge_making.merge_copy(turn.cursor, job, [job.job_id], files)
    new = turn.copy(job.task_id, copy, reason)
    hand_over(turn.cursor, job.task_id, [job.job_id], new)
    merge_making.begin(turn.cursor, job, new, files)
