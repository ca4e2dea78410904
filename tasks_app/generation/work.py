"""One task's turn in the job generator: bunches of jobs for all sites that the broker chose, until a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import psycopg
from django.conf import settings
from django.db import transaction

from brokerage_app.formulas.queue_room import room_of
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.verdict import Choice, Verdict
from jedisite.database.sql import hot_cursor
from tasks_app.domain.priorities import SerialPriority
from tasks_app.generation import companions
from tasks_app.generation.builder import Builder
from tasks_app.generation.buildjobs import library_for
from tasks_app.generation.grid_view import Known, World
from tasks_app.generation.picker import pick
from tasks_app.generation.rules.job_plan import FILES_A_STEP, JobPlan, Level, Place, files_to_read, plan_jobs
from tasks_app.generation.rules.sources import Picked, Source
from tasks_app.generation.store import Part, free_seeds, leave_out, store
from tasks_app.generation.turn_facts import TaskWork
from tasks_app.generation.user_jobs import UserJobs
from tasks_app.inputs.file_rows import hold
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.submission import sandboxes


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one task's turn: jobs made, whether input is left, and the broker's verdict.

    `waits_for` is a sentence on why no jobs can be made although sites would take them. `unplaced` are the verdicts on
    files that need more memory than the task's, by that memory, where no site takes their jobs. `unread` says which input
    has to be read before.
    """

    jobs: int
    input_left: bool
    verdict: Verdict
    waits_for: str = ""
    unplaced: dict[int, Verdict] = field(default_factory=dict)
    unread: str = ""
    scouting: bool = False
    """Whether the jobs are scouts."""
    needs: TaskNeeds | None = None
    first: Verdict | None = None
    """What the broker said before jobs were made, and of what needs; None when it was not asked."""
    known: Known | None = None
    """What else it was told then."""


def masters_with_work(task_id: int) -> list[Dataset]:
    found = Dataset.objects.with_work(task_id, types=INPUT_TYPES).filter(master_id=None)
    return list(found.order_by("list_position", "id"))


def generate(
    task: Task,
    fence: int,
    world: World,
    now: datetime,
    *,
    max_jobs: int,
    min_queue: int | None = None,
    crowd: UserJobs | None = None,
) -> Turn:
    """Make jobs of a claimed task until its input, the sites' room or `max_jobs` is used up.

    `world` is what the pass knows of the grid, `crowd` are the jobs of each user; the jobs made are added to them. Raises
    LostClaimError when the claim is gone.
    """
    work = TaskWork(task, fence, now)
    unread = work.unread()
    if unread is not None:
        sentence = f"the input dataset {unread.name} is {unread.status}: its files have to be read first"
        return Turn(0, True, Verdict(), unread=sentence)
    no_sandbox = sandboxes.lacking(task.id, task.user, work.raw, work.template.text)
    if no_sandbox:
        return Turn(0, True, Verdict(), no_sandbox)
    work.read_inputs()
    floor = settings.JEDI_QUEUE_FLOOR if min_queue is None else min_queue
    making = Making(work, world, now, floor, max_jobs)
    if crowd is not None and not work.scouting:
        making.priorities = crowd.priorities(work.facts, now)
    for master in masters_with_work(task.id):
        making.stuck.clear()
        while making.jobs < max_jobs and making.step(master):
            master.refresh_from_db(fields=["pick_cursor", "files_used", "files_to_be_used", "files"])
            if master.files_used >= master.files_to_be_used:
                break
    if crowd is not None:
        crowd.add(work.facts, making.jobs)
    verdict = making.verdict(work.needs.memory_mb)
    left = bool(masters_with_work(task.id))
    return Turn(
        making.jobs,
        left,
        verdict,
        making.waits_for,
        making.unplaced,
        scouting=work.scouting,
        needs=work.needs,
        first=making.first,
        known=making.known,
    )


@dataclass(slots=True)
class Making:
    """The jobs of one turn, made step by step."""

    work: TaskWork
    world: World
    now: datetime
    floor: int
    max_jobs: int
    jobs: int = 0
    waits_for: str = ""
    unplaced: dict[int, Verdict] = field(default_factory=dict)
    stuck: set[int] = field(default_factory=set)
    """Memory of files of this master of which no job can be made in this turn, although a site would take it."""
    first: Verdict | None = None
    known: Known | None = None
    priorities: SerialPriority | None = None

    def verdict(self, memory_mb: int) -> Verdict:
        """The broker's word on jobs that want that memory, as the sites are filled now."""
        needs = self.work.needs_with(memory_mb)
        found = self.world.decide(needs, self.work.task, self.now, floor=self.floor)
        if self.first is None:
            self.first, self.known = found, self.world.known_of(self.work.task, needs)
        return found

    def step(self, master: Dataset) -> bool:
        """One transaction: pick, plan, build, store. Returns whether another step makes sense."""
        work, least = self.work, self.work.needs.memory_mb
        usual = self._level(least)
        if usual is None:
            return False
        row = work.row(master)
        most_files = min(FILES_A_STEP, row.files_left)
        limit = min(files_to_read(row, usual.places[0].limits, self._most(usual)), most_files)
        with transaction.atomic(), hot_cursor() as cursor:
            hold(cursor, work.task.id, work.fence)
            while True:
                without = {*self.unplaced, *self.stuck}
                picked = pick(cursor, work.task.id, row, limit, least=least, without=without)
                level = self._next_level(picked, usual)
                if level is None:
                    return False
                files = picked.of_memory(level.memory_mb, least)
                sources = companions.read_sources(cursor, work, row, picked, files, self._most(level))
                made = plan_jobs(
                    sources,
                    level,
                    most=self._most(level),
                    is_all=limit == most_files,
                    scouting=work.scouting,
                    skip_short=work.skip_short,
                )
                if made.jobs:
                    self._store(cursor, level, made, sources)
                if made.left_out:
                    leave_out(cursor, work.task.id, sources[0], made.left_out)
                if made.jobs or made.left_out or self._is_mended(cursor, made, sources[0], level):
                    return True
                if made.reads_on:
                    limit = most_files
                    continue
                self.stuck.add(level.memory_mb)
                if not picked.is_cut and self.stuck.issuperset(picked.memory_levels(least)):
                    return False

    def _level(self, memory_mb: int) -> Level | None:
        """The sites for jobs of that memory; None, and noted unless it is the task's own, when there is none."""
        raised, verdict = memory_mb != self.work.needs.memory_mb, self.verdict(memory_mb)
        if verdict.chosen:
            return Level(memory_mb, [self._place(one) for one in sorted(verdict.chosen, key=lambda c: c.site)], raised)
        if raised:
            self.unplaced[memory_mb] = verdict
        return None

    def _place(self, choice: Choice) -> Place:
        work, site = self.work, self.world.site(choice.site)
        room = room_of(choice, site, self.floor, self.world.crowd(work.needs, work.task))
        return Place(site, choice, work.limits(site, choice.work_dir_mb), room)

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

    def _most(self, level: Level) -> int:
        """Jobs of one step."""
        return level.most_jobs(self.max_jobs - self.jobs)

    def _store(self, cursor: psycopg.Cursor[Any], level: Level, made: JobPlan, sources: Sequence[Source]) -> None:
        """Store the jobs of all sites, and count them on the snapshot of the sites."""
        work, streams = self.work, self.work.streams()
        inputs = [(source.dataset.name, source.dataset.stream) for source in sources]
        parts = []
        for place, groups in ((one.place, one.groups) for one in made.jobs):
            platform = place.choice.platform
            facts = replace(work.facts, cmt_config=platform) if platform else work.facts
            build = Builder(
                facts,
                work.needs_with(level.memory_mb),
                place.site,
                place.limits,
                streams,
                work.template,
                inputs,
                self.now,
                self.priorities,
            )
            parts.append(Part(build, groups))
            if self.priorities is not None:
                self.priorities = self.priorities.after(len(groups))
        if work.build is not None:
            for part in parts:
                part.build.use_library(
                    library_for(cursor, work.facts, work.build, part.build.site, work.scope, self.now)
                )
        seeds = free_seeds(cursor, work.task.id, sum(len(part.groups) for part in parts)) if work.has_seeds else None
        self.jobs += store(cursor, parts, sources, seeds)
        for part in parts:
            site = self.world.site(part.build.site.name)
            self.world.made(site.name, len(part.groups), work.task, cores=work.needs.cores_at(site))

    def _is_mended(self, cursor: psycopg.Cursor[Any], made: JobPlan, master: Source, level: Level) -> bool:
        """See what the next job lacks. Returns whether that is mended."""
        short = made.short_of
        if short is not None:
            if companions.add_copies(cursor, self.work, short, master.files, self._most(level)):
                return True
            grows = "; it still grows" if short.dataset.grows else ""
            self.waits_for = (
                f"the secondary dataset {short.dataset.name} has too few files left for the next job{grows}"
            )
        elif made.too_short:
            names = ", ".join(made.too_short)
            self.waits_for = f"the next job would be too short for the sites that could take it: {names}"
        return False
