"""The task broker of production: chooses the nucleus that gathers the outputs of a task.

The JEDI brokerage document, "ATLAS Production Task Brokerage" and "Special Brokerage for ATLAS Full-chain": nuclei are
skipped by rules, those that remain get a weight, and one is drawn with a chance in proportion to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from brokerage_app.brokers import production_job
from brokerage_app.brokers.deciding import allowed, names_queues, with_blocked
from brokerage_app.brokers.funnel import order_of
from brokerage_app.brokers.nucleus_words import blocked_by, unreadable, words_of_queues
from brokerage_app.cases.gathering import DESTINATION, NO_WORK, NUCLEUS, Gathering, Output, RemainingWork
from brokerage_app.cases.nucleus_case import (
    GB_A_TB,
    RW_OFFSET,
    NucleusCase,
    TaskBrokerSettings,
    default_storage,
    gathers_at,
    nowhere_complete,
    settings_of,
    site_as_nucleus,
    storage_for,
)
from brokerage_app.filters import nucleus as rules
from brokerage_app.filters.asking import Rule, sift
from brokerage_app.policy.configuration import Configuration
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid, Nucleus, Sharing
from brokerage_app.vocabulary.verdict import Choice, Verdict, counted
from jedisite.vocabulary.words import plural

JobCheck = Callable[[Sequence[SiteView]], Verdict]
"""The job broker's word on some queues, without a nucleus and without changing anything: the "hint" of the document."""

NamedCheck = Callable[[], Verdict]
"""The same on the queues that the task names, and no others may run its jobs."""

TAPE_WEIGHT: Final = 0.001
DEFAULT_SETTINGS: Final = TaskBrokerSettings()
WORLD: Final = "WORLD"
PRODUCTION: Final = "production"
BROKERED: Final = frozenset({("atlas", "managed"), ("atlas", "test")})


def _asks_for_backlog(case: NucleusCase) -> bool:
    return case.needs.t1_weight is None or case.needs.t1_weight >= 0


def _asks_for_queues(case: NucleusCase) -> bool:
    return case.able is not None


def _asks_for_input(case: NucleusCase) -> bool:
    return case.locality


_FIRST: Final[tuple[Rule[NucleusCase, Nucleus], ...]] = (
    Rule(rules.active),
    Rule(rules.no_backlog, _asks_for_backlog),
    Rule(rules.has_storage),
    Rule(rules.can_be_read),
    Rule(rules.can_be_written),
    Rule(rules.has_space),
)
_QUEUES: Final[Rule[NucleusCase, Nucleus]] = Rule(rules.can_run, _asks_for_queues)
_INPUT: Final[Rule[NucleusCase, Nucleus]] = Rule(rules.has_input, _asks_for_input)
RULES: Final[tuple[Rule[NucleusCase, Nucleus], ...]] = (*_FIRST, _QUEUES, _INPUT, Rule(rules.fits_chain))
"""In the order of the document."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one output goes: the endpoint, and the dataset's columns `destination` and `storagetoken`."""

    output: Output
    endpoint: str
    site: str

    @property
    def destination(self) -> str:
        return f"{NUCLEUS}{self.site}"

    @property
    def token(self) -> str:
        asked = self.output.token
        return f"{DESTINATION}{self.endpoint}/{asked}" if asked else f"{DESTINATION}{self.endpoint}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """The nucleus that the task gets, and where its outputs go there. `chance`: the part of all weights that it had."""

    choice: Choice
    chance: float
    destinations: tuple[Destination, ...]

    @property
    def nucleus(self) -> str:
        return self.choice.site


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of one choice: the `verdict` on all nuclei, and the nucleus that was drawn; None when none fits the task.

    `note` is a sentence on what was done without; "" when nothing was. `queues`: what was said of the queues that the task may
    use, when no nucleus would do.
    """

    verdict: Verdict
    drawn: Drawn | None = None
    note: str = ""
    queues: Verdict = field(default_factory=Verdict)

    def sentence(self) -> str:
        """For people, for instance "CERN was drawn of 3 nuclei, with a chance of 61 %; skipped: 2 nucleus space."."""
        note = f" {self.note}" if self.note else ""
        if self.drawn is None:
            return self.verdict.sentence() + note
        reasons = counted(self.verdict.counts())
        chosen = len(self.verdict.chosen)
        chance = f" with a chance of {self.drawn.chance:.0%}" if chosen > 1 else ""
        of = f" of {chosen} nuclei" if chosen > 1 else ""
        skipped = f"; skipped: {reasons}" if reasons else ""
        how = "drawn" if chosen > 1 else "chosen"
        return f"{self.drawn.nucleus} was {how}{of}{chance}{skipped}.{note}"


def is_responsible(configuration: Configuration, vo: str, label: str) -> bool:
    """Whether tasks of this kind get a nucleus: the parameter TASK_BROKER_{label} says it, else those of ATLAS do."""
    asked = configuration.get("brokerage", "TASK_BROKER", label, vo=vo)
    return asked == PRODUCTION if asked is not None else (vo, label) in BROKERED


def needs_nucleus(
    cloud: str | None, nucleus: str | None, destinations: Iterable[str | None], *, is_brokered: bool = True
) -> bool:
    """Whether a task has to be given a nucleus, or its outputs a place at the one it names, before jobs are made.

    `is_brokered`: tasks of its kind are given one. A nucleus that the task names gathers its outputs whatever its kind and cloud.
    """
    if nucleus:
        return not all(destinations)
    return is_brokered and (not cloud or cloud == WORLD)


def broker(
    needs: TaskNeeds,
    grid: Grid,
    gathering: Gathering,
    settings: TaskBrokerSettings = DEFAULT_SETTINGS,
    *,
    job_check: JobCheck,
    named_check: NamedCheck | None = None,
    draw: float,
    work: RemainingWork = NO_WORK,
) -> Decision:
    """Choose the nucleus of a task. `draw` is a number from 0 up to 1, by chance; all else is decided by the rest.

    A nucleus that the task names already is taken without any test. The queues that a task names do not count in the choice,
    as in JEDI; `named_check` is asked when no nucleus would do, to say why. None: the task names none.
    """
    if needs.nucleus:
        return _named(needs, grid, gathering)
    case = NucleusCase(needs, grid, gathering, settings, work)
    if not case.candidates:
        return _stopped(
            Skip("", codes.NO_NUCLEUS_KNOWN, "{:site is|sites are} known, none is a nucleus", (len(grid.sites),))
        )
    lacking = nowhere_complete(case) if case.locality else None
    if lacking is not None:
        return _stopped(unreadable(lacking, grid))
    case, note, jobs = _asked_of_all(case, job_check)
    found = sift(case, case.candidates, RULES)
    # Where nobody has any of the input, it would make all weights 0 and say nothing.
    has_some = any(case.local[nucleus.name].any_mb > 0 for nucleus in found.kept)
    weighed = case if has_some else case.without_locality()
    chosen = sorted(
        (weigh(weighed, nucleus) for nucleus in found.kept), key=lambda choice: (-choice.weight, choice.site)
    )
    verdict = Verdict(tuple(chosen), tuple(found.out))
    if not chosen:
        own = _of_named(case, found.out, named_check) if named_check is not None else None
        blocked = blocked_by(grid, found.out, jobs, own.blocked if own is not None else None)
        may = allowed(needs, grid).names
        said = own or with_blocked(jobs, needs, grid, order_of(PRODUCTION))
        queues = replace(said, skipped=tuple(skip for skip in said.skipped if skip.site in may))
        return Decision(replace(verdict, blocked=blocked), None, note, queues)
    choice, chance = pick(chosen, draw)
    return Decision(verdict, Drawn(choice, chance, _destinations(case, grid.nuclei[choice.site])), note)


def decide(
    needs: TaskNeeds,
    grid: Grid,
    configuration: Configuration,
    gathering: Gathering,
    *,
    draw: float,
    work: RemainingWork,
) -> Decision:
    """The choice under the parameters of the task's VO, label and share; queues are asked by the broker of production jobs."""
    settings = settings_of(configuration, vo=needs.vo, share=needs.share)
    of_jobs = production_job.ProductionSettings.from_configuration(
        configuration, vo=needs.vo, label=needs.label, share=needs.share
    )
    check = partial(production_job.hint, needs, grid, of_jobs)
    named = partial(production_job.of_named, needs, grid, of_jobs) if names_queues(needs) else None
    return broker(needs, grid, gathering, settings, job_check=check, named_check=named, draw=draw, work=work)


def _asked_of_all(case: NucleusCase, job_check: JobCheck) -> tuple[NucleusCase, str, Verdict]:
    """The case after the two steps that depend on which nuclei are left: can jobs run there, and must the input be there.

    With a note, and what the job broker said of the queues.
    """
    left = sift(case, case.candidates, _FIRST).kept
    if not left:
        return case, "", Verdict()
    grid = case.grid
    queues = {name: grid.sites[name] for nucleus in left for name in nucleus.queues if name in grid.sites}
    verdict = job_check(tuple(queues[name] for name in sorted(queues)))
    taken = {choice.site for choice in verdict.chosen}
    names = {nucleus.name for nucleus in left if taken.intersection(nucleus.queues)}
    case = case.with_able(
        names, words_of_queues((nucleus for nucleus in left if nucleus.name not in names), verdict, grid)
    )
    able = sift(case, left, (_QUEUES,)).kept
    if not case.locality or not able or sift(case, able, (_INPUT,)).kept or not case.locality_may_be_dropped:
        return case, "", verdict
    note = (
        f"No nucleus has enough of the input ({plural(case.inputs.files, 'file')}, {case.input_gb:.1f} GB); it need not be there "
        f"with an I/O intensity of {_shown(case.needs.io_intensity)} and priority {case.needs.priority}."
    )
    return case.without_locality(), note, verdict


def _of_named(case: NucleusCase, out: Iterable[Skip], check: NamedCheck) -> Verdict:
    """Which of the queues that the task names take its jobs, and what keeps all of them from it.

    Of a task whose jobs stay at its nucleus only queues count that are of a nucleus none of whose queues takes the jobs.
    """
    said, needs, grid = check(), case.needs, case.grid
    if (needs.t1_weight or 0) < 0 or needs.full_chain:
        has = Sharing.owns if needs.full_chain else Sharing.has
        places = [grid.nucleus_sharing(skip.site) for skip in out if skip.code == codes.NUCLEUS_NO_QUEUE]
        near = {name for name, site in grid.sites.items() if any(has(place, site) for place in places)}
        chosen = tuple(choice for choice in said.chosen if choice.site in near)
        said = Verdict(chosen, tuple(skip for skip in said.skipped if skip.site in near))
    return with_blocked(said, needs, grid, order_of(PRODUCTION))


def _shown(intensity: float | None) -> str:
    return "unknown size" if intensity is None else f"{intensity:g} kB/s"


def weigh(case: NucleusCase, nucleus: Nucleus) -> Choice:
    """The weight of a nucleus: much free space, little work ahead, and much of the input of tasks that read much.

    Spaces are those of the storage of the outputs that has least left.
    """
    settings, endpoint = case.settings, case.tightest(nucleus)
    free_gb = max(endpoint.space_free_gb or 0.0, 0.0) if endpoint else 0.0
    expired_gb = max(endpoint.space_expired_gb, 0.0) if endpoint else 0.0
    total_gb = (endpoint.space_total_gb or 0.0) if endpoint else 0.0
    ahead = case.work.ahead_of(nucleus.name, case.gathering.group, case.needs.priority)
    local, tape = 1.0, 1.0
    if case.locality:
        here = case.local[nucleus.name]
        if case.is_io_heavy and case.inputs.size_mb > 0:
            local = here.any_mb / case.inputs.size_mb
        if here.any_mb > here.disk_mb:
            tape = TAPE_WEIGHT
    factors = (
        ("local part of the input", local),
        ("on tape", tape),
        ("(free + expired) / total space", (free_gb + expired_gb) / total_gb if total_gb > 0 else 0.0),
        (f"free TB, {settings.free_disk_cutoff_tb:g} at most", min(settings.free_disk_cutoff_tb, free_gb / GB_A_TB)),
        ("1 / remaining work", 1 / _counted(ahead, legacy=settings.legacy_rw)),
    )
    weight = 1.0
    for _, value in factors:
        weight *= value
    return Choice(nucleus.name, weight, factors)


def _counted(hs06s: float, *, legacy: bool) -> float:
    if legacy:
        return hs06s if hs06s >= RW_OFFSET else 1.0
    return max(RW_OFFSET, hs06s)


def pick(chosen: Sequence[Choice], draw: float) -> tuple[Choice, float]:
    """One of several with a chance in proportion to its weight, and that chance; evenly when all weigh nothing.

    `draw` times the sum of the weights is used up along the list: with 0 it is the first, near 1 the last.
    """
    total = sum(choice.weight for choice in chosen)
    if total <= 0:
        return chosen[min(int(draw * len(chosen)), len(chosen) - 1)], 1 / len(chosen)
    rest = draw * total
    for choice in chosen:
        rest -= choice.weight
        if rest <= 0:
            return choice, choice.weight / total
    last = [choice for choice in chosen if choice.weight > 0][-1]  # the sum was rounded
    return last, last.weight / total


def _named(needs: TaskNeeds, grid: Grid, gathering: Gathering) -> Decision:
    nucleus = site_as_nucleus(needs.nucleus, grid)
    if nucleus is None:
        says = "the task names {}, which is neither a nucleus nor another site"
        return _stopped(Skip("", codes.NUCLEUS_UNKNOWN, says, (needs.nucleus,)))
    destinations = destinations_at(nucleus, gathering.outputs, grid, full_chain=bool(needs.full_chain))
    if destinations is None:
        skip = Skip(nucleus.name, codes.NUCLEUS_NO_STORAGE, "the task names {}, which has no storage", (nucleus.name,))
        return _stopped(skip)
    choice = Choice(nucleus.name, 1.0, (("named by the task", 1.0),))
    return Decision(Verdict((choice,)), Drawn(choice, 1.0, destinations))


def _destinations(case: NucleusCase, nucleus: Nucleus) -> tuple[Destination, ...]:
    found = destinations_at(nucleus, case.gathering.outputs, case.grid, full_chain=bool(case.needs.full_chain))
    return found or ()


def destinations_at(
    nucleus: Nucleus, outputs: Iterable[Output], grid: Grid, *, full_chain: bool
) -> tuple[Destination, ...] | None:
    """Where each output goes: one whose token fits nothing to the default, one that is distributed nowhere in particular.

    None when there is no storage at all.
    """
    where = gathers_at(nucleus, grid, full_chain=full_chain)
    found = []
    for output in outputs:
        if output.is_distributed:
            continue
        endpoint = storage_for(output.wants, where, grid) or default_storage(where, grid)
        if endpoint is None:
            return None
        found.append(Destination(output, endpoint.name, where.name))
    return tuple(found)


def _stopped(skip: Skip) -> Decision:
    return Decision(Verdict(stopped=skip))
