"""The end of a jumbo job: what it has not processed goes back to the jobsets, and another one may follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from events_app.ends.jobset_turn import Turn
from events_app.lifecycle.range_ends import end_jumbo
from events_app.lifecycle.range_moves import RANGES, is_in
from events_app.rules.event_states import PROCESSED, EventStatus
from events_app.rules.jumbo_tasks import JumboEnd, end_of_jumbo
from jedisite.agents.passes import kick
from jedisite.vocabulary.words import plural
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.outcomes.end_hooks import Ending
from tasks_app.outcomes.job_outcome import Outcome

_REPORTED: Final = f"""
SELECT coalesce(bool_or({is_in(PROCESSED)}), false),
       coalesce(sum({RANGES}) FILTER (WHERE {is_in({EventStatus.FAILED})}), 0)::bigint
  FROM jedi_events WHERE jeditaskid = %s AND pandaid = %s
"""  # noqa: S608 - numbers of ours


def end(turn: Turn, ending: Ending) -> Outcome:
    """End a jumbo job. Its finished ranges stay so until the consumers of their files end. Of what it stored only logs count."""
    said, job = ending
    only_failed_count = turn.rules[job.task_id].only_failed_count
    released = end_jumbo(turn.cursor, job.task_id, job.job_id, only_failed_count=only_failed_count).released
    kick("jumbo_jobs")
    said = replace(said, stored=tuple(pair for pair in said.stored if pair[0].type in LOG_TYPES))
    turn.cursor.execute(_REPORTED, [job.task_id, job.job_id])
    row = turn.cursor.fetchone()
    assert row is not None
    processed, failed = row
    became = end_of_jumbo(said.status, processed=processed, pilot_error=job.pilot_error)
    if became is None:
        return said
    return _told(said, became, released, failed)


def _told(said: Outcome, became: JumboEnd, released: int, failed: int) -> Outcome:
    own, back = bool(said.component), plural(released, "range goes back", "ranges go back")
    if failed:
        back = f"{plural(failed, 'range')} failed in it" + (f", {back}" if released else "")
    return replace(
        said,
        status=became.status,
        component=said.component if own or not became.code else "taskbuffer",
        code=said.code if own or not became.code else became.code,
        diag=said.diag or (f"it processed no range; {back}" if became.code else ""),
    )
