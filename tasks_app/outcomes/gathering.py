"""Outputs that a job left at its queue's storage are gathered at the nucleus: the job is transferring until they are there.

What its pilot reported is kept with the rule, and reported again, with the new addresses, when all has arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from tasks_app.ddm.addresses import is_below
from tasks_app.ddm.local_storage import ENDPOINT
from tasks_app.domain.states import JobStatus
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.lifecycle.job_moves import move_some
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.transfers.requesting import Wanted, WantedFile, add_rules
from tasks_app.transfers.storages import Storage, local_storages

Roots = Mapping[str, tuple[Path, Path]]
"""Folders of endpoints of this machine, as they are described and as they are found."""


def begin(
    cursor: psycopg.Cursor[Any], outcomes: Iterable[Outcome], said: Mapping[int, Any], by: str = "adder"
) -> set[int]:
    """Have the outputs of jobs that ended well gathered, where they are not at their destination yet. Returns those jobs.

    No statement where all outputs stay in the site's own storage.
    """
    away = [o for o in outcomes if o.status == JobStatus.FINISHED and any(_may_move(*pair) for pair in o.stored)]
    if not away:
        return set()
    stores = local_storages()
    roots = _roots_of(stores)
    wanted: list[Wanted] = []
    for outcome in away:
        by_place: dict[str, list[WantedFile]] = {}
        for output, report in outcome.stored:
            source = _lies_at(report["surl"], output.scope, output.lfn, roots)
            if output.endpoint in stores and source not in ("", output.endpoint):
                file = WantedFile(output.scope, output.lfn, report["fsize"], report["adler32"], output.file_id, source)
                by_place.setdefault(output.endpoint, []).append(file)
        # One destination at a time: when the job reports again, the next one is seen.
        for place, files in list(by_place.items())[:1]:
            report = said[outcome.job_id]
            wanted.append(
                Wanted(TransferKind.GATHER, place, files, task_id=outcome.task_id, job_id=outcome.job_id, report=report)
            )
    add_rules(cursor, wanted)
    jobs = {one.job_id for one in wanted if one.job_id is not None}
    if jobs:
        reason = "its outputs are gathered at their destination"
        move_some(cursor, sorted(jobs), JobStatus.HOLDING, JobStatus.TRANSFERRING, by=by, reason=reason)
    return jobs


def with_places(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """The same, where what is to be merged has the endpoint at which it was left: it is merged there, and gathered by nobody."""
    if not any(o.status == JobStatus.MERGING and o.stored for o in outcomes):
        return outcomes
    roots = _roots_of(local_storages())
    return [_where_it_lies(o, roots) if o.status == JobStatus.MERGING else o for o in outcomes] if roots else outcomes


def _where_it_lies(outcome: Outcome, roots: Roots) -> Outcome:
    places = [(_lies_at(report["surl"], one.scope, one.lfn, roots), one, report) for one, report in outcome.stored]
    stored = tuple((one._replace(endpoint=place or one.endpoint), report) for place, one, report in places)
    return replace(outcome, stored=stored)


def _may_move(output: Any, report: Mapping[str, Any]) -> bool:
    return output.endpoint not in (None, "", ENDPOINT) and str(report["surl"]).startswith("file:")


def _roots_of(stores: Mapping[str, Storage]) -> Roots:
    return {name: (one.path, one.path.resolve()) for name, one in stores.items()}


def _lies_at(surl: str, scope: str, lfn: str, roots: Roots) -> str:
    """The endpoint below whose folder a file lies; "" when it is none of this machine."""
    return next((name for name, own in roots.items() if is_below(surl, scope, lfn, own)), "")
