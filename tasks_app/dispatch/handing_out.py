"""Hot path: a pilot asks for jobs. One statement claims them and brings all that the pilot needs.

A job is handed out with a fence (its number of hand-outs), and to pilots that can carry one with a secret, of which only
the hash is kept.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import randrange
from typing import Any

from psycopg.types.numeric import Int4, Int8

from brokerage_app.grid.configured import configuration
from jedisite.database.sql import hot_cursor, texts
from tasks_app.counts.line_order import LineOrder, line_order
from tasks_app.dispatch.description import behind_walls, described
from tasks_app.dispatch.input_addresses import forget_astray
from tasks_app.dispatch.job_secrets import give_secrets
from tasks_app.dispatch.optional_names import name_optional
from tasks_app.dispatch.queue_storages import at_queue
from tasks_app.dispatch.worker_moves import handed_to
from tasks_app.domain.lines import of_job
from tasks_app.domain.range_jobs import BY_CHANNEL, CLONE
from tasks_app.lifecycle.job_handout import BY_LINE, BY_NUMBER, HAND_OUT, secret_of
from tasks_app.lifecycle.job_hooks import too_late

FULL_SCAN_EVERY_S = 0.5
"""How often a process looks from the top of a queue. Between, it goes on behind the last job it handed out: when an old
snapshot is held open, the rows of jobs that are long gone would else be walked through again at every call."""


BUILDS_OF = {"user": "panda"}
"""Pilots that ask for jobs of one label run the builds of its tasks, too."""


Place = tuple[int, int, int]
"""Where a job stands in a walk: place of its line, priority (negative), number. Parts that a walk does not ask are 0."""
FIRST: Place = (0, -(2**31), 0)


Key = tuple[str, str, bool, bool, bool]
"""Walks that go over the same jobs in the same order: queue, label, whether it is by number, whether of administrators only,
whether without jobs that take ranges of events."""


@dataclass(slots=True)
class _Hint:
    """The place of the last job handed out, and the order of lines that it belongs to; None: by number."""

    place: Place
    order: LineOrder | None
    full_scan_at: float


_hints: dict[Key, _Hint] = {}
_guard = threading.Lock()


_OF_ADMINISTRATORS = """
       AND produsername IN (SELECT username FROM auth_user WHERE is_superuser AND is_active)"""

_WITHOUT_RANGES = f"""
       AND coalesce(eventservice, 0) NOT IN ({", ".join(str(kind) for kind in sorted(BY_CHANNEL))})"""


# Asked only while some folder is away.
_READABLE = """
       AND NOT EXISTS (SELECT 1 FROM job_files i JOIN unnest(%(away)s::text[]) a (begins) ON starts_with(i.surl, a.begins)
                        WHERE i.pandaid = jobs.pandaid AND i.type IN ('input', 'lib', 'zipinput'))"""


Row = tuple[Any, ...]
_NUMBER, _PROCESSING, _PRIORITY, _SHARE, _WORK_QUEUE, _HANDLING, _EVENTS, _FILES = 0, 5, 12, 21, 22, 23, 29, 31
"""Places of columns in a row."""


@cache
def _claim_of(chosen: str, count: int, administrators_only: bool, without_ranges: bool, some_away: bool) -> str:
    """The statement for a way to choose and a number of jobs.

    The number stands in the text: with a LIMIT that it does not know, the server expects many rows, finds its general
    plan too dear, and plans anew at every call, which takes longer than the statement itself.
    """
    pieces = ((_OF_ADMINISTRATORS, administrators_only), (_WITHOUT_RANGES, without_ranges), (_READABLE, some_away))
    whose = "".join(piece for piece, holds in pieces if holds)
    return HAND_OUT.format(chosen=chosen.format(count=int(count), whose=whose))


@dataclass(frozen=True, slots=True)
class Request:
    """What a pilot asks: jobs for a queue, of one prodSourceLabel ("" is any).

    `with_secret`: the pilot shows the secret with each report. PanDA's own pilots know of none. With a `harvester` and
    a number as `worker` it is kept which worker got which job. `administrators_only`: nothing stands between a payload
    and the machine of the pilot, which gets only jobs of people who could do all there anyhow. `begins_with`: a program that
    puts up walls and is to start the job's own. `without_ranges`: payloads do not reach the channel for ranges of events of the
    pilot, which gets no job that takes some.
    """

    site: str
    label: str = ""
    count: int = 1
    node: str = ""
    worker: str = ""
    by: str = "pilot"
    with_secret: bool = True
    harvester: str = ""
    administrators_only: bool = False
    begins_with: str = ""
    without_ranges: bool = False


def get_jobs(request: Request, draw: int | None = None) -> list[dict[str, Any]]:
    """Claim up to `count` activated jobs of a queue and describe each as PanDA's pilots read it.

    Those whose inputs lie in a folder that is away wait.

    Those of urgent tasks go first. The others go by priority, where there are shares only within the most under-used
    global share or, where there is no tree of shares, work queue; but when `draw`, a chance number of 0 to 99, is not above
    SLOPPY_DISPATCH_RATIO, those that are oldest go first.

    With secrets each job has its own.
    """
    drawn = secrets.token_urlsafe(32) if request.with_secret else None
    order, at = line_order(), at_queue(request.site)
    sloppy = order.has_shares and is_sloppy(randrange(100) if draw is None else draw)
    rows = _claim(request, drawn, None if sloppy else order, at.away)
    if clones := [row[_NUMBER] for row in rows if row[_EVENTS] == CLONE]:
        late = too_late(clones)
        rows = [row for row in rows if row[_NUMBER] not in late]
    if rows and request.harvester:
        handed_to(request.harvester, request.worker, [row[_NUMBER] for row in rows])
    for row in rows:
        forget_astray(row[_NUMBER], row[_PROCESSING], row[_FILES])
    jobs = [described(row, secret_of(row[_NUMBER], drawn) if drawn else "", at) for row in rows]
    handling = [row[_HANDLING] for row in rows]
    if any(handling):
        give_secrets(jobs, handling)
        name_optional(jobs, handling)
    return [behind_walls(job, request.begins_with) for job in jobs] if request.begins_with else jobs


def is_sloppy(draw: int) -> bool:
    """Whether this call is one of the few that ignore shares, so that old jobs of an over-used share are not left for ever."""
    return draw <= float(configuration().get("jobdispatch", "SLOPPY_DISPATCH_RATIO"))


def _claim(request: Request, drawn: str | None, order: LineOrder | None, away: Sequence[str] = ()) -> list[Row]:
    """Without an order the oldest go first."""
    key = (request.site, request.label, order is None, request.administrators_only, request.without_ranges)
    now = time.monotonic()
    with _guard:
        hint = _hints.get(key)
    if hint is not None and now < hint.full_scan_at and hint.order is order:
        rows = _run(request, drawn, order, hint.place, away)
        if rows:
            _remember(key, rows, order, hint.full_scan_at)
            return rows
    rows = _run(request, drawn, order, FIRST, away)
    _remember(key, rows, order, now + FULL_SCAN_EVERY_S)
    return rows


def _remember(key: Key, rows: list[Row], order: LineOrder | None, full_scan_at: float) -> None:
    with _guard:
        if rows:
            _hints[key] = _Hint(_place(rows[-1], order), order, full_scan_at)
        else:
            _hints.pop(key, None)


def _place(row: Row, order: LineOrder | None) -> Place:
    if order is None:
        return 0, 0, row[_NUMBER]
    line = of_job(row[_PROCESSING], row[_HANDLING], row[_SHARE], row[_WORK_QUEUE])
    return order.place_of(line), -row[_PRIORITY], row[_NUMBER]


def _run(request: Request, drawn: str | None, order: LineOrder | None, after: Place, away: Sequence[str]) -> list[Row]:
    line, priority, job_id = after
    values: dict[str, Any] = {
        "site": request.site,
        "label": request.label,
        "also": BUILDS_OF.get(request.label, request.label),
        "node": request.node[:128],
        "worker": request.worker[:80],
        "by": request.by[:128],
        "drawn": drawn,
        "away": texts(away),
        "priority": Int8(priority),
        "job": Int8(job_id),
    }
    if order is not None:
        past_lines = line >= len(order.names)
        values |= {
            "lines": order.text,
            "first": Int4(line + 1),
            "other_priority": Int8(priority if past_lines else FIRST[1]),
            "other_job": Int8(job_id if past_lines else FIRST[2]),
        }
    chosen = BY_NUMBER if order is None else BY_LINE
    with hot_cursor() as cursor:
        claim = _claim_of(chosen, request.count, request.administrators_only, request.without_ranges, bool(away))
        cursor.execute(claim, values)
        rows = cursor.fetchall()
    # The server returns them in any order.
    return rows if len(rows) < 2 else sorted(rows, key=lambda row: _place(row, order))
