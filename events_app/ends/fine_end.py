"""The end of a fine-grained job: what it has finished stays, and its file comes back while ranges are left."""

from __future__ import annotations

from dataclasses import replace

from events_app.ends.consumer_end import NOT_NEEDED, told
from events_app.ends.jobset_facts import files_of
from events_app.ends.jobset_turn import Turn
from events_app.lifecycle.range_ends import finished_and_ready, give_back
from events_app.rules.fine_ends import FineEnd, fine_end
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import JobStatus
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.outcomes.end_hooks import Ending
from tasks_app.outcomes.job_outcome import Outcome


def end(turn: Turn, ending: Ending) -> Outcome:
    """End a fine-grained job that was not killed. Its file is finished when no range is left, and else ready again."""
    said, job = ending
    if job.job_id not in {file.owner for file in files_of(turn.cursor, job.task_id, job.job_id)}:
        return told(said, job, NOT_NEEDED, "its file was given to another job")
    give_back(turn.cursor, job.task_id, job.job_id)
    finished, left = finished_and_ready(turn.cursor, job.task_id, job.job_id, job.jobset_id)
    became = fine_end(finished, left)
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
