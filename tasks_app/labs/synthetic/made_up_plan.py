"""What a made-up grid is to hold: how large each task is, how old, in which state, and how its jobs fare. Pure.

A few tasks are large and most are small, as on real grids. What became of a task fits its age: the old ones have mostly
ended, the young ones wait. All times are seconds before one moment, "now".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

DAY_S: Final = 86_400.0
PAST_S: Final = 3 * DAY_S
"""The oldest task was made so long ago."""
YOUNG_S: Final = 3 * 3600.0
LARGEST_PART: Final = 0.05
"""Of all files, the most that one task has."""
SCOUTS: Final = 10

_BEGIN: Final = ("registered", "defined", "assigning", "ready")
_RAN: Final = (*_BEGIN, "scouting", "scouted", "running")


@dataclass(frozen=True, slots=True)
class Fate:
    """Where a made-up task stands, or how it has ended.

    input_status, output_status  of its datasets
    path        the states it went through, the last is the one it is in
    has_files, has_jobs          whether its inputs were looked up, whether jobs were made
    is_over     no job is open any more
    failing     of thousand attempts of jobs, how many fail; `sure`: the third attempt does well always
    says        what the task tells its owner
    """

    input_status: str
    output_status: str
    path: tuple[str, ...]
    has_files: bool = True
    has_jobs: bool = True
    is_over: bool = False
    failing: int = 70
    sure: bool = False
    says: str = ""

    @property
    def status(self) -> str:
        return self.path[-1]


FATES: Final = {
    fate.status: fate
    for fate in (
        Fate("defined", "defined", ("registered",), has_files=False, has_jobs=False),
        Fate("defined", "defined", ("registered", "staging"), has_files=False, has_jobs=False),
        Fate("defined", "defined", ("registered", "defined"), has_files=False, has_jobs=False),
        Fate(
            "broken",
            "defined",
            ("registered", "defined", "tobroken", "broken"),
            has_files=False,
            has_jobs=False,
            is_over=True,
            says="the input dataset is not known to the catalogue",
        ),
        Fate("ready", "defined", ("registered", "defined", "assigning"), has_jobs=False),
        Fate("ready", "defined", _BEGIN, has_jobs=False),
        Fate("ready", "defined", (*_BEGIN, "pending"), has_jobs=False, says="no site was found for the task's jobs"),
        Fate("ready", "defined", (*_BEGIN, "scouting"), failing=120),
        Fate("ready", "defined", _RAN),
        Fate("ready", "defined", (*_RAN, "throttled"), failing=250, says="too many jobs of the task failed lately"),
        Fate("ready", "defined", (*_RAN, "paused")),
        Fate("ready", "defined", (*_RAN, "finishing")),
        Fate(
            "ready",
            "defined",
            (*_RAN, "exhausted"),
            is_over=True,
            failing=650,
            says="too few jobs succeeded: look at their errors, mend the cause, and retry the task",
        ),
        Fate("ready", "defined", (*_RAN, "prepared"), is_over=True, sure=True),
        Fate("done", "done", (*_RAN, "prepared", "done"), is_over=True, sure=True),
        Fate("finished", "finished", (*_RAN, "prepared", "finished"), is_over=True, failing=330),
        Fate("failed", "failed", (*_RAN, "prepared", "failed"), is_over=True, failing=1000, says="no job succeeded"),
        Fate(
            "finished", "finished", (*_RAN, "aborting", "toabort", "aborted"), is_over=True, says="aborted by its owner"
        ),
    )
}

# Of hundred tasks of an age, how many are in which state.
_OLD: Final = {
    "done": 38,
    "running": 27,
    "finished": 13,
    "aborted": 5,
    "failed": 4,
    "exhausted": 4,
    "pending": 3,
    "broken": 2,
    "paused": 1,
    "throttled": 2,
    "prepared": 1,
}
_OF_A_DAY: Final = {
    "running": 52,
    "done": 14,
    "pending": 8,
    "ready": 5,
    "exhausted": 5,
    "throttled": 3,
    "finished": 3,
    "scouting": 3,
    "assigning": 2,
    "staging": 1,
    "aborted": 1,
    "failed": 1,
    "finishing": 1,
    "broken": 1,
}
_YOUNG: Final = {
    "running": 40,
    "scouting": 18,
    "ready": 14,
    "assigning": 9,
    "pending": 8,
    "defined": 5,
    "registered": 4,
    "staging": 2,
}

_GIVEN_NAMES: Final = (
    "amara",
    "bence",
    "chiara",
    "dmitri",
    "elin",
    "farid",
    "grace",
    "hugo",
    "ines",
    "jonas",
    "keiko",
    "liam",
    "marta",
    "nikos",
    "olga",
    "pavel",
    "rosa",
    "sven",
    "tomas",
    "yara",
)
_FAMILY_NAMES: Final = (
    "okafor",
    "nagy",
    "rossi",
    "lindqvist",
    "haddad",
    "muller",
    "costa",
    "tanaka",
    "novak",
    "dubois",
)
USERS: Final = tuple(f"{given}.{family}" for given in _GIVEN_NAMES for family in _FAMILY_NAMES)
ACTIVITIES: Final = ("simul", "evgen", "reco", "deriv", "pile")


class Chance(Protocol):
    """The methods of `random.Random` that are used."""

    def random(self) -> float: ...

    def randrange(self, stop: int, /) -> int: ...

    def paretovariate(self, alpha: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Size:
    """How much is made. Files and jobs are divided over tasks as chance has it; a task has one file at least."""

    tasks: int
    jobs: int
    files: int


@dataclass(slots=True)
class TaskPlan:
    """One task. `units` are pieces of work, each with one job and its further attempts; `span_s` is how long all of them
    take, so that those whose time has not come yet have no job. `most` bounds the units that have one."""

    fate: Fate
    created_s: float
    changed_s: float
    span_s: float
    user: str
    is_user: bool
    activity: str
    cores: int
    ram_mb: int
    priority: int
    failing: int
    files: int = 0
    units: int = 0
    most: int = 2**31 - 1
    has_begun: float = field(default=1.0)
    """The part of the units that have a job."""


def plans(size: Size, chance: Chance) -> list[TaskPlan]:
    """The tasks, the oldest first. Their files are as many as asked; jobs, with further attempts, nearly so."""
    found = [_task(chance, (size.tasks - n) / size.tasks * PAST_S) for n in range(size.tasks)]
    _give_files(found, size.files, chance)
    _give_units(found, size.jobs)
    return found


def _task(chance: Chance, age_s: float) -> TaskPlan:
    mix = _OLD if age_s > DAY_S else _OF_A_DAY if age_s > YOUNG_S else _YOUNG
    fate = FATES[_one_of(mix, chance)]
    changed = age_s * (0.02 + 0.5 * chance.random())
    begun, span = 1.0, age_s - changed
    if fate.has_jobs and (not fate.is_over or fate.status == "aborted"):
        part = 0.15 + 0.8 * chance.random()
        begun, span = min(1.0, part / LAST_START), (span if fate.is_over else age_s) / part
    is_user = chance.random() < 0.35
    cores = 1 if is_user or chance.random() < 0.3 else 8
    failing = fate.failing
    if failing < 500 and chance.random() < 0.08:
        failing = 350
    return TaskPlan(
        fate,
        age_s,
        changed,
        span,
        user=USERS[int(len(USERS) * chance.random() ** 2)],
        is_user=is_user,
        activity="analy" if is_user else ACTIVITIES[chance.randrange(len(ACTIVITIES))],
        cores=cores,
        ram_mb=1000 + 250 * chance.randrange(8),
        priority=100 + 50 * chance.randrange(17),
        failing=failing,
        most=SCOUTS if fate.status == "scouting" else 2**31 - 1,
        has_begun=begun,
    )


LAST_START: Final = 0.6
"""Of a task's span, the part in which its units begin; what is left is enough for three attempts of the last one."""


def _one_of(mix: dict[str, int], chance: Chance) -> str:
    left = chance.randrange(sum(mix.values()))
    for name, weight in mix.items():
        left -= weight
        if left < 0:
            return name
    raise AssertionError("weights are positive")


def _give_files(tasks: Sequence[TaskPlan], files: int, chance: Chance) -> None:
    fed = [task for task in tasks if task.fate.has_files]
    if not fed:
        return
    weights = [min(chance.paretovariate(1.1), 400.0) for _ in fed]
    total = sum(weights)
    for task, weight in zip(fed, weights, strict=True):
        task.files = max(1, int(files * min(weight / total, LARGEST_PART)))
    # What rounding leaves goes to tasks that run: one of them becomes the largest.
    left = files - sum(task.files for task in fed)
    running = [task for task in fed if task.fate.status == "running"] or fed
    running[len(running) // 3].files += max(0, left)


def _give_units(tasks: Sequence[TaskPlan], jobs: int) -> None:
    working = [task for task in tasks if task.fate.has_jobs and task.files]
    expected = sum(task.files * task.has_begun * _attempts(task) for task in working)
    rate = min(1.0, jobs / expected) if expected else 0.0
    for task in working:
        task.units = max(1, min(task.files, round(task.files * rate)))


def _attempts(task: TaskPlan) -> float:
    """Attempts that a unit needs on average."""
    fails = task.failing / 1000
    return 1 + fails + fails * fails
