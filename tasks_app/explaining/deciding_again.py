"""What if: decisions that were kept are made again under changes, on the grid as it was. Nothing in the database changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q

from brokerage_app.advice import remedies, whatif
from brokerage_app.advice.task_remedies import Remedy
from brokerage_app.advice.whatif import ChangeError, Conditions, Decide, Difference, WhatIf
from brokerage_app.brokers import choosing
from brokerage_app.brokers.funnel import NUCLEI
from brokerage_app.cases.analysis_settings import NO_FACTS, AnalysisFacts
from brokerage_app.formulas.queue_room import ALONE, QueueUsers
from brokerage_app.grid.configured import configuration, read
from brokerage_app.grid.repository import load_grid
from brokerage_app.models import GridSnapshot, VerdictRecord
from brokerage_app.policy.configuration import Configuration
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.stored import from_json, needs_of, unpack
from brokerage_app.vocabulary.verdict import Verdict
from tasks_app.configured import site_limits
from tasks_app.domain.states import TaskStatus
from tasks_app.generation import nuclei
from tasks_app.models import Task

SITES_SHOWN = 200


class NothingKeptError(LookupError):
    """There is no decision on jobs of the task with what was asked for and the grid of that time."""


def decider(record: VerdictRecord, usual: Grid, *, to_queues: bool = False) -> Decide:
    """The broker as it was asked for a record, with what it knew of user and task. `usual`: the grid without changes.

    Of the choice of a nucleus: what it leads to, since a task is not helped by a nucleus when the queues that it names
    refuse its jobs then; `to_queues`: up to the queues that take the jobs, whether it names any or not.
    """
    if record.kind == NUCLEI:
        known = nuclei.Known.of(record.facts or {})

        def nucleus(needs: TaskNeeds, grid: Grid, configuration: Configuration) -> Verdict:
            return choosing.takers(
                needs,
                grid,
                configuration,
                known.gathering,
                draw=known.draw,
                work=known.work,
                floor=settings.JEDI_QUEUE_FLOOR,
                to_queues=to_queues,
            )

        return nucleus
    facts = from_json(AnalysisFacts, record.facts) if record.broker == choosing.ANALYSIS and record.facts else NO_FACTS
    queue_users = from_json(QueueUsers, record.facts) if record.broker == choosing.GENERIC and record.facts else ALONE

    def decide(needs: TaskNeeds, grid: Grid, configuration: Configuration) -> Verdict:
        return choosing.decide(
            needs,
            grid,
            configuration,
            floor=settings.JEDI_QUEUE_FLOOR,
            facts=facts,
            queue_users=queue_users.on(grid, usual),
        )

    return decide


def kept_of_task(task_id: int) -> VerdictRecord:
    """The last decision on the jobs of a task that can be made again. Raises NothingKeptError."""
    found: VerdictRecord | None = _kept().filter(task_id=task_id).order_by("-id").first()
    if found is None:
        raise NothingKeptError(f"for task {task_id}, no decision on its jobs was kept together with the grid")
    return found


def kept(verdict_id: int) -> VerdictRecord:
    """A decision on jobs by its number. Raises NothingKeptError when it cannot be made again."""
    found: VerdictRecord | None = _kept().filter(pk=verdict_id).first()
    if found is None:
        raise NothingKeptError(f"decision {verdict_id} is not a decision on jobs that was kept together with the grid")
    return found


def gaining(changes: Mapping[str, Sequence[int]], queue: str, now: datetime) -> dict[str, set[int]]:
    """Of the tasks of each change (a line) those that would get a queue under it: their last decisions are made again.

    On the grid as it is now, as the advice on a task is: one statement and those of the grid, and two decisions for each
    task of each change.
    """
    tasks = {task for of in changes.values() for task in of}
    waiting = Q(task_id__in=Task.objects.filter(pk__in=tasks, status=TaskStatus.ASSIGNING).values("id"))
    of_kind = Q(waiting, kind=NUCLEI) | Q(~waiting, kind="job")
    found = VerdictRecord.objects.filter(of_kind, needs__isnull=False, task_id__in=tasks).order_by("task_id", "-id")
    records = {record.task_id: record for record in found.distinct("task_id")}
    grid, current = load_grid(now), read()
    gained: dict[str, set[int]] = {line: set() for line in changes}
    for line, of in changes.items():
        for record in filter(None, map(records.get, of)):
            try:
                result = whatif.what_if(
                    Conditions(needs_of(record.needs), grid, current),
                    [whatif.parse(line)],
                    decider(record, grid, to_queues=True),
                )
            except ChangeError:
                continue
            before, after = (_has(verdict, queue) for verdict in (result.before, result.after))
            if after and not before:
                gained[line].add(record.task_id)
    return gained


def _has(verdict: Verdict, queue: str) -> bool:
    """Whether a queue was chosen, or a part of it for jobs of a size."""
    return any(choice.site == queue or choice.site.rpartition("/")[0] == queue for choice in verdict.chosen)


def of_needs(plain: Mapping[str, Any]) -> VerdictRecord:
    """A decision that was never made: on needs as they are stored, on the grid that was kept last. It is not saved.

    Raises NothingKeptError without a grid, NeedsError for needs that cannot be read.
    """
    snapshot = GridSnapshot.objects.order_by("-id").first()
    if snapshot is None:
        raise NothingKeptError("no grid has been kept yet: the first decision keeps one")
    try:
        needs = needs_of(plain)
    except Exception as exc:
        # The library raises groups of many kinds.
        inner = getattr(exc, "exceptions", (exc,))[0]
        raise NeedsError(str(inner)) from exc
    name = choosing.broker_of(needs.vo, needs.label, read())
    return VerdictRecord(
        task_id=needs.task_id, needs=dict(plain), snapshot=snapshot, broker=name, at=snapshot.at, share=needs.share
    )


class NeedsError(ValueError):
    """Needs that cannot be read; the sentence names the field."""


def again(record: VerdictRecord, lines: Iterable[str]) -> WhatIf:
    """A decision made again on the grid of its time, and the same under changes.

    Raises ChangeError for a line that cannot be read or made.
    """
    changes = [whatif.parse(line) for line in lines]
    assert record.snapshot is not None
    grid = unpack(bytes(record.snapshot.body))
    return whatif.what_if(
        Conditions(needs_of(record.needs), grid, site_limits.as_here(read())), changes, decider(record, grid)
    )


def helping(record: VerdictRecord, now: datetime) -> remedies.Found | None:
    """The changes that let a task run whose last decision chose no site: it is made again on the grid as it is now.

    None when it cannot be made again, and when it is stopped before any site is asked.
    """
    if record.needs is None:
        return None
    conditions = Conditions(needs_of(record.needs), load_grid(now), site_limits.as_here(configuration()))
    decide = decider(record, conditions.grid)
    found = decide(conditions.needs, conditions.grid, conditions.configuration)
    if found.chosen:
        site = found.chosen[0].site
        taker = conditions.grid.sites[site].queue if site in conditions.grid.sites else site
        return remedies.Found(
            (Remedy("Wait for the next pass: the grid has changed since this decision", "nobody", (), (taker,)),)
        )
    if found.stopped is not None:
        return None
    return remedies.search(conditions, found.blocked, decide) if found.blocked is not None else remedies.Found()


def for_task(task_id: int, lines: Iterable[str]) -> tuple[VerdictRecord, WhatIf]:
    """The last decision on the jobs of a task, and the same under changes.

    Raises ChangeError for a line that cannot be read or made, NothingKeptError.
    """
    lines = list(lines)
    for line in lines:
        whatif.parse(line)
    record = kept_of_task(task_id)
    return record, again(record, lines)


def _kept() -> Any:
    found = VerdictRecord.objects.filter(kind="job", needs__isnull=False, snapshot__isnull=False)
    return found.select_related("snapshot")


@dataclass(slots=True)
class Replay:
    """What many decisions would have been: how many, and of those that differ the task with what is different."""

    decisions: int = 0
    unchanged: int = 0
    decisive: int = 0
    left_out: int = 0
    gained: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    unblocked: list[int] = field(default_factory=list)
    blocked: list[int] = field(default_factory=list)
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, task_id: int, found: Difference) -> None:
        self.decisions += 1
        self.unchanged += not found
        self.decisive += found.is_decisive
        self.gained.update(found.gained)
        self.lost.update(found.lost)
        self.codes.update((old.code, new.code) for old, new in found.reasons.values())
        if found.blocked_before and not found.blocked_after:
            self.unblocked.append(task_id)
        if found.blocked_after and not found.blocked_before:
            self.blocked.append(task_id)

    def as_json(self) -> dict[str, Any]:
        return {
            "decisions": self.decisions,
            "unchanged": self.unchanged,
            "decisive": self.decisive,
            "left_out": self.left_out,
            "unblocked_tasks": self.unblocked,
            "blocked_tasks": self.blocked,
            "gained": dict(self.gained.most_common()),
            "lost": dict(self.lost.most_common()),
            "reasons": [{"before": a, "after": b, "sites": n} for (a, b), n in self.codes.most_common()],
        }


def replay(last: int, lines: Sequence[str]) -> Replay:
    """Decide the last kept verdicts again, as the configuration is now and under changes. Raises ChangeError.

    A change of a queue that is not in a snapshot is left out for the decisions on it.
    """
    changes = [whatif.parse(line) for line in lines]
    current, found = read(), Replay()
    Conditions(TaskNeeds(), Grid(), current).under([c for c in changes if c.place not in ("site", "endpoint")])
    grids: dict[int, Grid] = {}
    for record in _kept().defer("snapshot__body").order_by("-id")[:last]:
        grid = grids.get(record.snapshot_id)
        if grid is None:
            grid = grids[record.snapshot_id] = _grid(record.snapshot_id)
        try:
            result = whatif.what_if(Conditions(needs_of(record.needs), grid, current), changes, decider(record, grid))
        except ChangeError:
            found.left_out += 1
            continue
        found.add(record.task_id, result.difference)
    return found


def _grid(snapshot_id: int) -> Grid:
    return unpack(bytes(GridSnapshot.objects.values_list("body", flat=True).get(pk=snapshot_id)))


def as_plain(record: VerdictRecord, result: WhatIf) -> dict[str, Any]:
    """A comparison as plain values. `numbers`: sites that lack the same as before, with what was and would be said of them."""
    found = result.difference
    return {
        "task": record.task_id,
        "decided_at": record.at,
        "broker": record.broker,
        "grid_of": record.snapshot.at if record.snapshot else None,
        "before": _verdict(result.before),
        "after": _verdict(result.after),
        "gained": found.gained,
        "lost": found.lost,
        "weights": [{"site": s, "before": a, "after": b} for s, (a, b) in list(found.weights.items())[:SITES_SHOWN]],
        "reasons": [
            {"site": s, "before": a.code, "after": b.code, "sentence": b.detail}
            for s, (a, b) in list(found.reasons.items())[:SITES_SHOWN]
        ],
        "numbers": [
            {"site": s, "code": b.code, "before": a.detail, "after": b.detail}
            for s, (a, b) in list(found.numbers.items())[:SITES_SHOWN]
        ],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "sentence": verdict.sentence(),
        "code": verdict.code,
        "chosen": [{"site": name, "weight": c.weight} for name, c in verdict.chosen_queues().items()],
        "skipped": [
            {"site": name, "code": s.code, "sentence": s.detail}
            for name, s in list(verdict.skipped_queues().items())[:SITES_SHOWN]
        ],
    }
