"""The steps of one task's turn in the job generator: each picks files, plans, builds and stores jobs, until a limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from django.db import transaction

from jedisite.database.sql import hot_cursor
from tasks_app.domain.jumbo_use import WAITING_QUEUE
from tasks_app.domain.priorities import SerialPriority
from tasks_app.generation import companions
from tasks_app.generation.generation_pass import GenerationPass
from tasks_app.generation.grid_view import Brokered, GridView
from tasks_app.generation.job_building import build_jobs
from tasks_app.generation.picker import pick
from tasks_app.generation.rules import explanation
from tasks_app.generation.rules.consumers import turns
from tasks_app.generation.rules.explanation import Explanation, Until
from tasks_app.generation.rules.job_plan import (
    FILES_A_STEP,
    JobPlan,
    Level,
    Place,
    by_outputs,
    files_to_read,
    plan_jobs,
)
from tasks_app.generation.rules.sources import Picked, Source
from tasks_app.generation.store import Bunch, leave_out, store
from tasks_app.generation.turn_facts import TurnFacts, has_held_packages, read_turn
from tasks_app.generation.turns_by_configuration import most_files
from tasks_app.generation.waiting_consumers import waiting_place
from tasks_app.inputs.file_rows import hold
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.submission import sandboxes


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What came of one task's turn: the jobs that were stored, and why there are none or not all.

    scouting      the jobs are scouts
    input_left    more jobs can be made of its input
    sites_left    sites take more of them
    brokered      the decision that is to be kept; None when no broker was asked
    why           None when jobs were stored and nothing holds up the rest
    """

    jobs: int = 0
    scouting: bool = False
    input_left: bool = False
    sites_left: bool = False
    brokered: Brokered | None = None
    why: Explanation | None = None

    @property
    def goes_on(self) -> bool:
        """Whether another turn would bring more jobs at once."""
        return self.jobs > 0 and self.input_left and self.sites_left


def generate(
    task: Task, fence: int, around: GenerationPass, now: datetime, *, max_jobs: int, for_jumbo: bool = False
) -> TurnResult:
    """Make jobs of a claimed task until its input, the sites' room or `max_jobs` is used up. With `for_jumbo`, of a task that is
    throttled, consumers alone that wait for its jumbo jobs.

    Raises LostClaimError when the claim is gone; BadBuildError, BadTemplate and UnresolvedPlaceholder when no job can ever
    be made; CannotStoreError when the events of its input are not known.
    """
    turn = read_turn(task, fence, now)
    unfit = _unfit(turn)
    if unfit is not None:
        return TurnResult(why=unfit)
    steps = Steps(turn.with_inputs(), around.view, max_jobs, most_files(task, around.throttle.queues), for_jumbo)
    if around.user_jobs is not None and not turn.scouting:
        steps.priorities = around.user_jobs.priorities(turn.facts, now)
    for master in _masters_with_work(task.id):
        steps.use(master)
    if for_jumbo:
        # Its page goes on saying that it is throttled.
        return TurnResult(steps.jobs, turn.scouting, why=Explanation(task.error_dialog or "", Until.ROOM))
    around.count(task, steps.jobs)
    return steps.result()


def _unfit(turn: TurnFacts) -> Explanation | None:
    """Why the broker need not be asked."""
    unread = turn.unread()
    if unread is not None:
        return explanation.unread(unread.name, unread.status)
    no_sandbox = sandboxes.lacking(turn.task.id, turn.task.user, turn.raw, turn.template.text)
    return explanation.without_sandbox(no_sandbox) if no_sandbox else None


def _masters_with_work(task_id: int) -> list[Dataset]:
    found = Dataset.objects.with_work(task_id, types=INPUT_TYPES).filter(master_id=None)
    return list(found.order_by("list_position", "id"))


@dataclass(slots=True)
class Steps:
    """The steps of one turn, and what has come of them so far.

    max_files    input files that may be read; None for any number. A job that wants more is made of them nevertheless
    for_jumbo    consumers are made that wait for jumbo jobs, and no others
    files        those that were
    first        what the broker said before jobs were made
    unplaced     what it said of files that need more memory than the task's, by that memory, where no site takes their jobs
    stuck        memory of files of this master of which no job can be made in this turn, although a site would take it
    lacks        what the last job lacked that could not be made of such files
    priorities   of the next jobs, where their number counts
    """

    turn: TurnFacts
    view: GridView
    max_jobs: int
    max_files: int | None = None
    for_jumbo: bool = False
    jobs: int = 0
    files: int = 0
    first: Brokered | None = None
    unplaced: dict[int, Brokered] = field(default_factory=dict)
    stuck: set[int] = field(default_factory=set)
    lacks: str = ""
    priorities: SerialPriority | None = None

    def use(self, master: Dataset) -> None:
        """Make jobs of one master dataset."""
        self.stuck.clear()
        while self.jobs < self.max_jobs and self._may_read() and self.step(master):
            master.refresh_from_db(fields=["pick_cursor", "files_used", "files_to_be_used", "files"])
            if master.files_used >= master.files_to_be_used:
                break

    def result(self) -> TurnResult:
        turn = self.turn
        verdict = self._broker(turn.needs.memory_mb).verdict
        input_left = bool(_masters_with_work(turn.task.id))
        unplaced = {memory_mb: one.verdict for memory_mb, one in self.unplaced.items()}
        why = explanation.of_turn(
            self.jobs,
            lacks=self.lacks,
            unplaced=unplaced,
            verdict=verdict,
            input_left=input_left,
            on_hold=not self.jobs and turn.is_workflow and has_held_packages(turn.task.id),
        )
        # That no site takes files of more memory says more than where other jobs could go.
        kept = next(iter(self.unplaced.values())) if self.unplaced and not self.jobs else self.first
        return TurnResult(self.jobs, turn.scouting, input_left, bool(verdict.chosen), kept, why)

    def _broker(self, memory_mb: int) -> Brokered:
        """What the broker says of jobs that want that memory, as the sites are filled now."""
        found = self.view.decide(self.turn.needs_with(memory_mb), self.turn.task, self.turn.now)
        self.first = self.first or found
        return found

    def step(self, master: Dataset) -> bool:
        """One transaction: pick, plan, build, store. Returns whether another step makes sense."""
        turn, least = self.turn, self.turn.needs.memory_mb
        usual = self._level(least)
        if usual is None:
            return False
        row = turn.row(master)
        most_files = min(FILES_A_STEP, row.files_left)
        limit = min(files_to_read(row, usual.places[0].limits, self._most(usual)), most_files)
        if self.max_files is not None:
            limit = min(limit, max(self.max_files - self.files, files_to_read(row, usual.places[0].limits, 1)))
        with transaction.atomic(), hot_cursor() as cursor:
            hold(cursor, turn.task.id, turn.fence)
            while True:
                without = {*self.unplaced, *self.stuck}
                picked = pick(cursor, turn.task.id, row, limit, least=least, without=without)
                level = self._next_level(picked, usual)
                if level is None:
                    return False
                files = picked.of_memory(level.memory_mb, least)
                sources = companions.read_sources(cursor, turn, row, picked, files, self._most(level))
                planned = plan_jobs(
                    sources,
                    level,
                    most=self._most(level),
                    is_all=limit == most_files,
                    scouting=turn.scouting,
                    skip_short=turn.skip_short,
                )
                self.files += len(picked.files) if planned.jobs else 0
                for alike in by_outputs(planned, turn.job_groups):
                    bunch = build_jobs(cursor, turn, alike, level.memory_mb, sources, self.priorities, level.places)
                    self._store(cursor, bunch, level)
                if planned.left_out:
                    leave_out(cursor, turn.task.id, sources[0], planned.left_out)
                    companions.note_left_out(turn, [file.lfn for file in planned.left_out])
                if planned.jobs or planned.left_out or self._is_mended(cursor, planned, sources[0], level):
                    return True
                if planned.reads_on:
                    limit = most_files
                    continue
                self.stuck.add(level.memory_mb)
                if not picked.is_cut and self.stuck.issuperset(picked.memory_levels(least)):
                    return False

    def _level(self, memory_mb: int) -> Level | None:
        """The sites for jobs of that memory; None, and noted unless it is the task's own, when there is none."""
        if self.for_jumbo:
            return self._waiting_level() if memory_mb == self.turn.needs.memory_mb else None
        raised, decided = memory_mb != self.turn.needs.memory_mb, self._broker(memory_mb)
        if not decided.verdict.chosen:
            if raised:
                self.unplaced[memory_mb] = decided
            return None if raised else self._waiting_level()
        places = []
        for choice in sorted(decided.verdict.chosen, key=lambda choice: choice.site):
            site = self.view.site(choice.site)
            limits = self.turn.limits(site, choice.work_dir_mb)
            places.append(Place(site, choice, limits, self.view.room(choice, decided)))
        return Level(memory_mb, places, raised)

    def _waiting_level(self) -> Level | None:
        """The place of consumers that wait for jumbo jobs of their task, when these have a place and they have none."""
        place = waiting_place(self.turn, self.view)
        return Level(self.turn.needs.memory_mb, [place], False) if place is not None else None

    def _next_level(self, picked: Picked, usual: Level) -> Level | None:
        """The memory of the next jobs: that of the first file for which there is a site and of which jobs can be made."""
        for memory_mb in picked.memory_levels(usual.memory_mb):
            if memory_mb in self.stuck:
                continue
            if memory_mb == usual.memory_mb:
                return usual
            level = self._level(memory_mb) if memory_mb not in self.unplaced else None
            if level is not None:
                return level
        return None

    def _may_read(self) -> bool:
        return self.max_files is None or self.files < self.max_files

    def _most(self, level: Level) -> int:
        """Jobs of one step."""
        return level.most_jobs(self.max_jobs - self.jobs)

    def _store(self, cursor: psycopg.Cursor[Any], bunch: Bunch, level: Level) -> None:
        """Store the jobs of all sites, and count them on what the pass knows of the sites, consumers where each of them runs."""
        turn, stored = self.turn, store(cursor, bunch)
        self.jobs += stored
        if self.priorities is not None:
            self.priorities = self.priorities.after(stored)
        names = {place.site.queue: place.site.name for place in level.places}
        for jobs in bunch.sites:
            if jobs.site.name == WAITING_QUEUE:
                continue
            sites = [jobs.site.name, *(names[slot.queue] for slot in jobs.slots[1:])]
            number = jobs.consumers.number if jobs.consumers is not None else 1
            for name, each in zip(sites, turns(number, len(sites)), strict=True):
                cores = turn.needs.cores_at(self.view.site(name))
                self.view.made(name, len(jobs.groups) * each, turn.task, cores=cores)

    def _is_mended(self, cursor: psycopg.Cursor[Any], planned: JobPlan, master: Source, level: Level) -> bool:
        """See what the next job lacks. Returns whether that is mended."""
        short = planned.short_of
        if short is not None and companions.add_copies(cursor, self.turn, short, master.files, self._most(level)):
            return True
        self.lacks = explanation.lacking(planned) or self.lacks
        return False
