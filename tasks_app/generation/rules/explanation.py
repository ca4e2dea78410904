"""Why a task gets no jobs in its turn, or not for all of its files, and until when it waits: all sentences on that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from brokerage_app.vocabulary.verdict import Verdict
from jedisite import refusals
from tasks_app.generation.rules.job_plan import JobPlan
from tasks_app.params.buildstep import BadBuildError

FULL_WAIT: Final = timedelta(seconds=2)
"""Until a task whose sites are full is looked at again; a job that starts or ends makes room earlier."""
UNREAD_WAIT: Final = timedelta(seconds=30)
"""Until a task is looked at again one of whose inputs has to be read first."""
NOT_FILLED: Final = "the remaining files do not fill a job yet; more files are expected"

ON_HOLD: Final = "the rest of it belongs to packages of its workflow that are on hold"


class Until(Enum):
    """What a task waits for that got no jobs."""

    NEXT_PASS = "the next pass of the generator"
    INPUT_READ = "the feeder has read its input"
    ROOM = "a site has room, or more input comes"
    GRID_CHANGED = "the grid changes, or the usual time is over"
    NEVER = "nothing: its jobs cannot be made"


WAITS: Final = {Until.NEXT_PASS: timedelta(), Until.INPUT_READ: UNREAD_WAIT, Until.ROOM: FULL_WAIT}
"""How long tasks wait that stay in their state."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A sentence for people, "" where the one of before holds, and until when the task waits."""

    sentence: str
    until: Until


THROTTLED: Final = Explanation("", Until.NEXT_PASS)
"""The throttle says itself on all of its tasks that they get no more jobs."""


def unread(dataset: str, status: str | None) -> Explanation:
    sentence = f"the input dataset {dataset} is {status}: its files have to be read first"
    # It is not set aside: the feeder looks at the inputs of tasks that work.
    return Explanation(sentence, Until.INPUT_READ)


def without_sandbox(sentence: str) -> Explanation:
    return Explanation(sentence, Until.GRID_CHANGED)


def impossible(error: Exception) -> Explanation:
    what = (
        "its sources cannot be built" if isinstance(error, BadBuildError) else "the parameters of a job cannot be made"
    )
    return Explanation(f"{what}: {error}", Until.NEVER)


def lacking(plan: JobPlan) -> str:
    """What the next job lacks; "" when nothing but room."""
    if plan.short_of is not None:
        short = plan.short_of.dataset
        grows = "; it still grows" if short.grows else ""
        return f"the secondary dataset {short.name} has too few files left for the next job{grows}"
    if plan.too_short:
        return f"the next job would be too short for the sites that could run it: {', '.join(plan.too_short)}"
    return ""


def of_turn(
    jobs: int,
    *,
    lacks: str,
    unplaced: Mapping[int, Verdict],
    verdict: Verdict,
    input_left: bool,
    on_hold: bool = False,
) -> Explanation | None:
    """The explanation of a turn that made so many jobs; None when it made some and nothing holds up the rest.

    `lacks` is what `lacking` said last. `unplaced` are the verdicts on files that need more memory than the task's, by that
    memory, where no site takes their jobs; `verdict` is that on its usual jobs at the end of the turn. `on_hold`: packages of its
    workflow are.
    """
    raised = " ".join(
        f"Files that need {memory_mb} MB wait: {one.sentence()}" for memory_mb, one in sorted(unplaced.items())
    )
    if jobs:
        return Explanation(raised, Until.NEXT_PASS) if raised else None
    if lacks:
        return Explanation(lacks, Until.GRID_CHANGED)
    if raised:
        return Explanation(raised, Until.ROOM if all(map(_only_full, unplaced.values())) else Until.GRID_CHANGED)
    if verdict.chosen:
        return Explanation((ON_HOLD if on_hold else NOT_FILLED) if input_left else "", Until.ROOM)
    return Explanation(verdict.sentence(), Until.ROOM if _only_full(verdict) else Until.GRID_CHANGED)


def _only_full(verdict: Verdict) -> bool:
    """Whether at least one site was skipped for no other reason than its full queue."""
    return any(refusals.get(skip.code).group in ("capacity", "throttle") for skip in verdict.skipped)
