"""The end of a merge job: what it merged is merged, or is merged later, or is thrown away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from events_app.ends import jobset_lines, merge_inputs
from events_app.ends.jobset_facts import files_of
from events_app.ends.jobset_turn import Turn
from events_app.lifecycle import jobset_ranges
from events_app.rules.consumer_ends import INCONSISTENT
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import JobStatus
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.outcomes.end_hooks import Ending
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.job_outputs import Output


def end(turn: Turn, ending: Ending) -> Outcome:
    """The consumers that wait for this merge are to be ended; the file is booked by the end of the merge job, as of any job.

    One that has not read all that is done has failed, whatever its pilot says.

    Of a merge that failed the events are kept where the task says so: the next jobset of the files is merged with them.
    """
    said, job = ending
    files = [file.file_id for file in files_of(turn.cursor, job.task_id, job.job_id)]
    if said.status == JobStatus.FINISHED and (lost := merge_inputs.unread(turn.cursor, job.task_id, job.job_id, files)):
        said = _not_all(said, lost)
    if said.status == JobStatus.FINISHED:
        if turn.rules[job.task_id].accepts_partial:
            for file, dataset, events in jobset_ranges.given_up(turn.cursor, job.task_id, files):
                turn.unused.setdefault(job.task_id, Counter())[dataset] += events
                turn.partial.setdefault(job.task_id, set()).add(file)
        workers, events = jobset_ranges.merge(turn.cursor, job.task_id, files, job.job_id)
        turn.tell_merging(job.task_id, job.jobset_id, workers, jobset_lines.MERGED, job.job_id)
        return replace(said, stored=tuple((output, _with_events(output, row, events)) for output, row in said.stored))
    if said.status == JobStatus.FAILED:
        zips, loose = merge_inputs.unreadable(turn.cursor, job, files)
        jobset_ranges.corrupt(turn.cursor, job.task_id, files, zips, loose)
    if not turn.rules[job.task_id].keeps_events:
        jobset_ranges.discard(turn.cursor, job.task_id, files)
        turn.tell_merging(job.task_id, job.jobset_id, (), jobset_lines.NOT_MERGED, job.job_id)
    return said


def _with_events(output: Output, said: Mapping[str, Any], events: int) -> dict[str, Any]:
    """What a pilot said of an output, with the number of events that were merged, unless it knows better."""
    known = output.type in LOG_TYPES or said.get("nevents") is not None
    return dict(said) if known else {**said, "nevents": events}


def _not_all(said: Outcome, ranges: int) -> Outcome:
    """The end of a merge job that has not read some ranges: what it made is nobody's."""
    return replace(
        said,
        status=JobStatus.FAILED,
        component="taskbuffer",
        code=INCONSISTENT,
        diag=f"{plural(ranges, 'range that is done was', 'ranges that are done were')} none of its inputs",
        stored=tuple(pair for pair in said.stored if pair[0].type in LOG_TYPES),
    )
