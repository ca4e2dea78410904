"""From the plan of a step to its jobs as values, with the libraries and the seed numbers that they use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg

from brokerage_app.vocabulary.site_view import SiteView
from tasks_app.domain.priorities import SerialPriority
from tasks_app.generation.input_copies import copy_place
from tasks_app.generation.job_rows import SiteJobs
from tasks_app.generation.library_jobs import library_for
from tasks_app.generation.rules.common_facts import TaskFacts
from tasks_app.generation.rules.job_plan import JobPlan, SiteShare
from tasks_app.generation.rules.sources import Source
from tasks_app.generation.store import Bunch, free_seeds
from tasks_app.generation.turn_facts import TurnFacts
from tasks_app.params.buildstep import Library


def build_jobs(
    cursor: psycopg.Cursor[Any],
    turn: TurnFacts,
    plan: JobPlan,
    memory_mb: int,
    sources: Sequence[Source],
    priorities: SerialPriority | None,
) -> Bunch:
    """The jobs of a step, whose files need that memory. Where a library is missing, the job that makes it is stored.

    In a transaction that has locked the task's row. Raises BadBuildError, UnresolvedPlaceholder.
    """
    inputs = [(source.dataset.name, source.dataset.stream) for source in sources]
    needs, streams = turn.needs_with(memory_mb), turn.streams(sources[0].dataset.id, plan.own_outputs)
    sites, before = list[SiteJobs](), 0
    for share in plan.jobs:
        site = share.place.site
        sites.append(
            SiteJobs(
                _facts_at(turn, share),
                needs,
                site,
                share.place.limits,
                share.groups,
                inputs,
                streams,
                turn.template,
                turn.now,
                library_at(cursor, turn, site),
                priorities.after(before) if priorities is not None else None,
                turn.job_groups,
                None if share.place.limits.direct_io else copy_place(needs, site, turn.facts.label or ""),
            )
        )
        before += len(share.groups)
    seeds = free_seeds(cursor, turn.task.id, before) if turn.has_seeds else None
    return Bunch(sites, sources, seeds, turn.sandbox)


def _facts_at(turn: TurnFacts, share: SiteShare) -> TaskFacts:
    platform = share.place.choice.platform
    return replace(turn.facts, cmt_config=platform) if platform else turn.facts


def library_at(cursor: psycopg.Cursor[Any], turn: TurnFacts, site: SiteView) -> Library | None:
    """The library that jobs of a task read at a site; None when its sources need no compiling."""
    if turn.build is None:
        return None
    return library_for(cursor, turn.facts, turn.build, site, turn.scope, turn.now)
