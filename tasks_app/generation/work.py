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
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.verdict import Choice, Verdict
from jedisite.database.sql import hot_cursor
from tasks_app.domain.priorities import SerialPriority
from tasks_app.generation import companions
from tasks_app.generation.builder import Builder
from tasks_app.generation.buildjobs import library_for
from tasks_app.generation.companions import Companion
from tasks_app.generation.grid_view import Known, World
from tasks_app.generation.picker import Picked, chunk_of, pick
from tasks_app.generation.store import Part, Source, free_seeds, leave_out, store
from tasks_app.generation.turn_facts import TaskWork
from tasks_app.generation.user_jobs import UserJobs
from tasks_app.inputs.file_rows import hold
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.splitting.chunk import InputFile
from tasks_app.splitting.limits import SplitLimits
from tasks_app.splitting.plan import Candidate, Plan, plan
from tasks_app.submission import sandboxes

FILES_A_STEP = 40_000
"""Files that one transaction hands out at most."""
JOBS_A_STEP = 5_000


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


@dataclass(frozen=True, slots=True)
class _Level:
    """Jobs of files that need the same memory, with the sites that take them, by name."""

    memory_mb: int
    sites: list[SiteView]
    choices: dict[str, Choice]


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

    def room(self, choice: Choice) -> int:
        """How many more jobs a queue takes."""
        crowd = self.world.crowd(self.work.needs, self.work.task)
        return room_of(choice, self.world.site(choice.site), self.floor, crowd)

    def step(self, master: Dataset) -> bool:
        """One transaction: pick, divide over the sites, build, store. Returns whether another step makes sense."""
        work, least = self.work, self.work.needs.memory_mb
        usual = self._level(least)
        if usual is None:
            return False
        row = work.row(master)
        jobs = self._most(usual)
        limits = work.limits(usual.sites[0])
        limit = work.typical_files(row, limits) * (jobs + 1)
        if limits.files_per_job is None:
            limit = max(limit, limits.max_files + 1)
        with transaction.atomic(), hot_cursor() as cursor:
            hold(cursor, work.task.id, work.fence)
            while True:
                limit = min(limit, FILES_A_STEP, row.files_left)
                without = {*self.unplaced, *self.stuck}
                picked = pick(cursor, work.task.id, row, limit, least=least, without=without)
                level = self._next_level(picked, usual)
                if level is None:
                    return False
                again = self._make(
                    cursor, master, Source(row, picked), level, is_all=limit >= min(FILES_A_STEP, row.files_left)
                )
                if again:
                    return True
                if again is None:
                    limit = FILES_A_STEP
                    continue
                self.stuck.add(level.memory_mb)
                if not picked.is_cut and self.stuck.issuperset(picked.memory_levels(least)):
                    return False

    def _level(self, memory_mb: int) -> _Level | None:
        """The sites for jobs of that memory; None, and noted unless it is the task's own, when there is none."""
        verdict = self.verdict(memory_mb)
        if verdict.chosen:
            choices = {choice.site: choice for choice in verdict.chosen}
            # By name, so that ties go by name.
            return _Level(memory_mb, [self.world.site(name) for name in sorted(choices)], choices)
        if memory_mb != self.work.needs.memory_mb:
            self.unplaced[memory_mb] = verdict
        return None

    def _next_level(self, picked: Picked, usual: _Level) -> _Level | None:
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

    def _most(self, level: _Level) -> int:
        """Jobs of one step."""
        return min(sum(map(self.room, level.choices.values())), self.max_jobs - self.jobs, JOBS_A_STEP)

    def _make(
        self, cursor: psycopg.Cursor[Any], master: Dataset, source: Source, level: _Level, *, is_all: bool
    ) -> bool | None:
        """Make jobs of the files of one memory level. Returns whether another step makes sense; None when more files
        have to be read before one job can be made."""
        work, picked, most = self.work, source.picked, self._most(level)
        files = _of_level(picked.files, level.memory_mb, work.needs.memory_mb)
        raised = level.memory_mb != work.needs.memory_mb
        others = companions.read(cursor, work, len(files), most)
        files = companions.paired(cursor, work, files, picked.old_jobs, others)
        limits = {site.name: work.limits(site, level.choices[site.name].work_dir_mb) for site in level.sites}
        more = (picked.is_cut and len(picked.files) < source.dataset.files_left) or master.state == "mutable"
        cut = plan(
            chunk_of(source.dataset, files, [(other.row, other.files) for other in others]),
            [
                Candidate(
                    site.name,
                    limits[site.name],
                    choice.weight,
                    choice.queued,
                    self.room(choice),
                    site.portion or None,
                )
                for site in level.sites
                for choice in (level.choices[site.name],)
            ],
            # Files of another memory come back one by one: more of them may never come.
            scouting=work.scouting,
            more_to_come=more and not raised,
            most_groups=most,
            skip_short=work.skip_short,
        )
        if cut.shares:
            self._store(cursor, level, limits, cut, [source, *(Source(other.row, other.picked) for other in others)])
        if cut.left_out:
            leave_out(cursor, work.task.id, source, cut.left_out)
        if cut.shares or cut.left_out:
            return True
        if more and not raised and cut.short_of is None and not cut.too_short and not is_all:
            return None
        return self._explain(cursor, cut, files, others, most)

    def _store(
        self,
        cursor: psycopg.Cursor[Any],
        level: _Level,
        limits: dict[str, SplitLimits],
        cut: Plan,
        sources: Sequence[Source],
    ) -> None:
        """Store the jobs of all sites, and count them on the snapshot of the sites."""
        work, streams = self.work, self.work.streams()
        inputs = [(source.dataset.name, source.dataset.stream) for source in sources]
        parts = []
        for name, groups in cut.by_site().items():
            platform = level.choices[name].platform
            facts = replace(work.facts, cmt_config=platform) if platform else work.facts
            build = Builder(
                facts,
                work.needs_with(level.memory_mb),
                self.world.site(name),
                limits[name],
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

    def _explain(
        self,
        cursor: psycopg.Cursor[Any],
        cut: Plan,
        files: Sequence[InputFile],
        others: Sequence[Companion],
        most: int,
    ) -> bool:
        """See why no job was made of these files. Returns whether that is mended."""
        if cut.short_of is not None:
            short = next(other for other in others if other.row.id == cut.short_of)
            if companions.add_copies(cursor, self.work, short, files, most):
                return True
            grows = "; it still grows" if short.grows else ""
            self.waits_for = f"the secondary dataset {short.row.name} has too few files left for the next job{grows}"
        elif cut.too_short:
            names = ", ".join(cut.too_short)
            self.waits_for = f"the next job would be too short for the sites that could take it: {names}"
        return False


def _of_level(files: Sequence[InputFile], memory_mb: int, least: int) -> Sequence[InputFile]:
    """The files whose jobs ask for that memory; `least` is what every job asks for."""
    if memory_mb == least and not any(file.memory > least for file in files):
        return files
    return [file for file in files if max(file.memory, least) == memory_mb]
