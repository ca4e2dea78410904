"""From the plan of a step to its jobs as values, with the libraries and the seed numbers that they use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg

from brokerage_app.vocabulary.site_view import SiteView
from tasks_app.domain.jumbo_use import WAITING_QUEUE
from tasks_app.domain.priorities import GivenPriorities, SerialPriority
from tasks_app.generation.input_copies import CopyPlace, copy_place
from tasks_app.generation.job_rows import SiteJobs
from tasks_app.generation.library_jobs import library_for
from tasks_app.generation.rules.common_facts import TaskFacts
from tasks_app.generation.rules.job_plan import JobPlan, Place
from tasks_app.generation.rules.sources import Source
from tasks_app.generation.store import Bunch, free_seeds
from tasks_app.generation.turn_facts import TurnFacts
from tasks_app.lifecycle.job_hooks import Slot
from tasks_app.params.buildstep import Library
from tasks_app.splitting.chunk import Group


def build_jobs(
    cursor: psycopg.Cursor[Any],
    turn: TurnFacts,
    plan: JobPlan,
    memory_mb: int,
    sources: Sequence[Source],
    priorities: SerialPriority | None,
    places: Sequence[Place] = (),
) -> Bunch:
    """The jobs of a step, whose files need that memory. Where a library is missing, the job that makes it is stored.

    `places` are all that take such jobs: consumers of one input may be spread over several.

    In a transaction that has locked the task's row. Raises BadBuildError, UnresolvedPlaceholder.
    """
    inputs = [(source.dataset.name, source.dataset.stream) for source in sources]
    streams, now = turn.streams(sources[0].dataset.id, plan.own_outputs), turn.now

    def at(place: Place, groups: Sequence[Group] = ()) -> SiteJobs:
        site = place.site
        facts = _facts_at(turn, place)
        return SiteJobs(facts, needs, site, place.limits, groups, inputs, streams, turn.template, now)

    needs, sites, before, consumers = turn.needs_with(memory_mb), list[SiteJobs](), 0, turn.consumers
    elsewhere = list[Slot]()
    if consumers is not None and consumers.sites > 1:
        able = sorted((place for place in places if not _copies(turn, place)), key=lambda place: -place.choice.weight)
        elsewhere = [at(place).slot for place in able]
    for share in plan.jobs:
        jobs = replace(
            at(share.place, share.groups),
            library=library_at(cursor, turn, share.place.site),
            priorities=priorities.after(before) if priorities is not None else None,
            job_groups=turn.job_groups,
            copies=_copies(turn, share.place),
            consumers=consumers,
            elsewhere=elsewhere,
        )
        sites.append(jobs)
        before += len(share.groups)
    if turn.package_priorities:
        sites = [replace(jobs, priorities=_of_packages(turn, jobs)) for jobs in sites]
    seeds = free_seeds(cursor, turn.task.id, before) if turn.has_seeds else None
    return Bunch(sites, sources, seeds, turn.sandbox, turn.rule)


def _of_packages(turn: TurnFacts, jobs: SiteJobs) -> GivenPriorities:
    """The priorities of jobs of a workflow, of which some packages have their own."""
    usual, own = jobs.priorities, turn.package_priorities
    return GivenPriorities(
        [
            own.get(group.files[0].boundary or 0, jobs.task.priority if usual is None else usual.at(index))
            for index, group in enumerate(jobs.groups)
        ]
    )


def _copies(turn: TurnFacts, place: Place) -> CopyPlace | None:
    """Where the input is copied to that is not at a queue; None where it can be read at once."""
    if place.limits.direct_io or place.site.name == WAITING_QUEUE:
        return None
    return copy_place(turn.needs, place.site, turn.facts.label or "")


def _facts_at(turn: TurnFacts, place: Place) -> TaskFacts:
    platform = place.choice.platform
    return replace(turn.facts, cmt_config=platform) if platform else turn.facts


def library_at(cursor: psycopg.Cursor[Any], turn: TurnFacts, site: SiteView) -> Library | None:
    """The library that jobs of a task read at a site; None when its sources need no compiling."""
    if turn.build is None:
        return None
    return library_for(cursor, turn.facts, turn.build, site, turn.scope, turn.now)
