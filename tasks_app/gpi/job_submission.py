"""Submission, monitoring, kills and resubmissions: what happens to a stored job, for masters and jobs without subjobs alike.

All of it stands between `store.changing`, so that two processes never do it at once.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tasks_app.gpi.backends import Piece, State
from tasks_app.gpi.components import to_json
from tasks_app.gpi.ganga_errors import GangaException, JobError, SiteUnavailable
from tasks_app.gpi.ganga_splitters import changes_of
from tasks_app.gpi.job_store import Stored
from tasks_app.gpi.rules.master_status import ACTIVE, COMPLETED, FAILED, FINAL, NEW, SUBMITTED, master_status
from tasks_app.gpi.rules.submissions import in_bulk, one_by_one

log = logging.getLogger("gpi")
BEGUN = "begun"
"""Mark of a job whose submission has begun; one that is found while nobody submits was killed in the midst of it."""


def fresh(change: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"change": change or {}, "status": NEW, "attempt": 1}


def entries(stored: Stored) -> list[dict[str, Any]]:
    """What is submitted: the subjobs, or the job itself."""
    return stored.subjobs or [stored.job.setdefault("own", fresh())]


def derive(stored: Stored) -> str:
    """Work out the state of a job from what it consists of, and store it."""
    stored.job["status"] = master_status(entry["status"] for entry in entries(stored))
    if not stored.subjobs:
        stored.job["status"] = entries(stored)[0]["status"]
    counted: dict[str, int] = {}
    for entry in stored.subjobs:
        counted[entry["status"]] = counted.get(entry["status"], 0) + 1
    stored.job["counts"] = counted
    return str(stored.job["status"])


def submit(job: Any, *, keep_going: bool) -> bool:
    """Split and submit a job that is new. Returns False when all was taken back without an error, as `keep_going` asks.

    Raises JobError; before the backend has taken any subjob, everything is then as it was.
    """
    with job.store.changing(job.id) as stored:
        if BEGUN in stored.job:
            recover(job, stored)
            if stored.job["status"] != NEW:
                return True
        if stored.job["status"] != NEW:
            raise JobError(
                f"job {job.id} is {stored.job['status']}: only a new job is submitted. Copy it, or resubmit it"
            )
        job.check()
        changes = [to_json(change) for change in changes_of(job)] if job.splitter is not None else []
        stored.subjobs[:] = [fresh(change) for change in changes]
        stored.job.pop("own", None)
        pieces = job.pieces(stored)
        try:
            result = (_in_bulk if job.backend.is_bulk else _one_by_one)(job, stored, pieces, keep_going)
        except SiteUnavailable:
            job.store.write(job.id)
            raise
        except GangaException:
            take_back(job, stored)
            raise
        said = result.pop("said")
        if result["is_taken_back"]:
            take_back(job, stored)
        else:
            stored.job["submissions"] = stored.job.get("submissions", 0) + 1
            derive(stored)
        stored.job.pop(BEGUN, None)
        job.store.write(job.id)
    if result["is_error"]:
        raise JobError(said)
    return not result["is_taken_back"]


def _one_by_one(job: Any, stored: Stored, pieces: Sequence[Piece], keep_going: bool) -> dict[str, Any]:
    said: list[str] = []

    def prepared(piece: Piece) -> Callable[[], bool]:
        def call() -> bool:
            try:
                job.backend.prepare(piece)
            except (GangaException, OSError) as error:
                said.append(f"subjob {piece.number}: {error}" if stored.subjobs else str(error))
                return False
            return True

        return call

    result = one_by_one(map(prepared, pieces), keep_going=keep_going)
    for text in said:
        log.warning("job %s: %s", job.id, text)
    for entry, status in zip(entries(stored), result.statuses):  # noqa: B905 - of one length
        entry["status"] = status
    if not result.is_taken_back:
        stored.job[BEGUN] = True
        job.store.write(job.id)
        taken = [p for p, status in zip(pieces, result.statuses) if status == SUBMITTED]  # noqa: B905
        job.backend.start(job, taken, job.folder)
    return {"is_error": result.is_error, "is_taken_back": result.is_taken_back, "said": said[0] if said else ""}


def _in_bulk(job: Any, stored: Stored, pieces: Sequence[Piece], keep_going: bool) -> dict[str, Any]:
    stored.job["backend"] = job.backend.plan(job, pieces)
    stored.job[BEGUN] = True
    job.store.write(job.id)
    taken = job.backend.send(job, stored.job["backend"], len(pieces))
    result = in_bulk(taken, keep_going=keep_going)
    for entry, status in zip(entries(stored), result.statuses):  # noqa: B905 - of one length
        entry["status"] = status
    return {"is_error": result.is_error, "is_taken_back": False, "said": "the site refused some subjobs"}


def take_back(job: Any, stored: Stored) -> None:
    """Everything is as before the submission: new, without subjobs."""
    stored.subjobs.clear()
    for name in ("own", "backend", BEGUN, "counts"):
        stored.job.pop(name, None)
    stored.job["status"] = NEW
    for name in ("subjobs", "own", "rounds"):
        shutil.rmtree(job.folder / name, ignore_errors=True)
    job.store.write(job.id)


def recover(job: Any, stored: Stored) -> None:
    """Carry on, or take back, a submission whose process was killed in the midst of it. The caller holds the lock."""
    if job.backend.is_bulk:
        try:
            taken = job.backend.send(job, stored.job["backend"], len(entries(stored)))
        except SiteUnavailable:
            raise
        except GangaException:
            take_back(job, stored)
            return
        for entry, one in zip(entries(stored), taken):  # noqa: B905 - of one length
            entry["status"] = SUBMITTED if one else FAILED
    elif not any((job.folder / "rounds").glob("*/alive")):
        take_back(job, stored)
        return
    del stored.job[BEGUN]
    derive(stored)


def monitor(job: Any) -> None:
    """Ask the backend what became of those parts of a job that are at work, and store it."""
    known = job.store.job(job.id)
    if BEGUN not in known and known["status"] not in ACTIVE:
        if known["status"] == COMPLETED and known.get("counts") and "merged" not in known:
            job.postprocess()
        return
    try:
        _monitor(job)
    except SiteUnavailable as error:
        log.warning("job %s: %s", job.id, error)


def _monitor(job: Any) -> None:
    with job.store.changing(job.id) as stored:
        if BEGUN in stored.job:
            recover(job, stored)
        active = [piece for piece in job.pieces(stored) if entries(stored)[piece.number]["status"] in ACTIVE]
        if not active:
            return
        _note(stored, active, job.backend.states(job, active, job.folder))
        derive(stored)
    if stored.job["status"] in FINAL:
        job.postprocess()


def _note(stored: Stored, pieces: Sequence[Piece], found: Iterable[State]) -> None:
    for piece, state in zip(pieces, found):  # noqa: B905 - of one length
        entry = entries(stored)[piece.number]
        entry["status"] = state.status
        for name, value in (("exit_code", state.exit_code), ("error", state.error), ("jobs", list(state.jobs))):
            if value in (None, "", []):
                entry.pop(name, None)
            else:
                entry[name] = value


def kill(job: Any, numbers: Iterable[int] | None = None) -> None:
    """Kill a job, or some of its subjobs: those that have not ended. Raises JobError for a job that is new."""
    with job.store.changing(job.id) as stored:
        all_of_it = entries(stored)
        wanted = range(len(all_of_it)) if numbers is None else sorted(set(numbers))
        if all(all_of_it[number]["status"] == NEW for number in wanted):
            raise JobError(f"job {job.id} is new: there is nothing to kill")
        left = [number for number in wanted if all_of_it[number]["status"] in ACTIVE]
        if not left:
            log.warning("job %s has ended already", job.id)
            return
        pieces = job.pieces(stored)
        hit = [pieces[number] for number in left]
        job.backend.kill(job, hit, job.folder)
        _note(stored, hit, job.backend.states(job, hit, job.folder))
        derive(stored)


def resubmit(job: Any, numbers: Iterable[int] | None = None) -> None:
    """Submit subjobs again that have ended: those of these numbers, or all that failed. Raises JobError."""
    with job.store.changing(job.id) as stored:
        all_of_it = entries(stored)
        if numbers is None and stored.subjobs:
            wanted = [n for n, entry in enumerate(all_of_it) if entry["status"] == FAILED]
            if not wanted:
                raise JobError(
                    f"job {job.id} has no failed subjobs: name the subjobs to resubmit, as in j.subjobs(3).resubmit()"
                )
        else:
            wanted = sorted(set(numbers)) if numbers is not None else [0]
        for number in wanted:
            status = all_of_it[number]["status"]
            if status not in FINAL and not (status == NEW and stored.job["status"] != NEW):
                where = f"subjob {job.id}.{number}" if stored.subjobs else f"job {job.id}"
                raise JobError(f"{where} is {status}: only what is completed, failed or killed is resubmitted")
        job.backend.check_resubmission([all_of_it[number]["status"] for number in wanted])
        before = {number: dict(all_of_it[number]) for number in wanted}
        for number in wanted:
            entry = all_of_it[number]
            entry["attempt"] += entry["status"] != NEW
            entry["status"] = SUBMITTED
            for name in ("exit_code", "error"):
                entry.pop(name, None)
        pieces = job.pieces(stored)
        try:
            job.backend.resubmit(job, [pieces[number] for number in wanted], job.folder)
        except (GangaException, OSError):
            for number, entry in before.items():
                all_of_it[number].clear()
                all_of_it[number].update(entry)
            raise
        stored.job["submissions"] = stored.job.get("submissions", 0) + 1
        stored.job.pop("merged", None)
        derive(stored)


def postprocess(job: Any) -> None:
    """Merge the outputs of a master that is completed, once."""
    with job.store.changing(job.id) as stored:
        if stored.job["status"] != COMPLETED or not stored.subjobs or "merged" in stored.job:
            return
        try:
            if job.postprocessors:
                job.fetch()
        except SiteUnavailable as error:
            log.warning("job %s is merged later: %s", job.id, error)
            return
        except GangaException as error:
            log.warning("job %s: its outputs cannot be fetched: %s", job.id, error)
        stored.job["merged"] = []
        for merger in job.postprocessors:
            with contextlib.suppress(FileNotFoundError):
                for file in merger.files:
                    (job.outputdir / merger.target_name(str(getattr(file, "namePattern", file)))).unlink()
            try:
                stored.job["merged"] += [path.name for path in merger.merge(job.subjobs, job.outputdir)]
            except (GangaException, OSError) as error:
                log.warning("job %s: nothing was merged: %s", job.id, error)
