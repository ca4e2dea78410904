"""Inputs that are tried again keep their sequence numbers: the job made of them gets the numbers of the earlier one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.chunk import InputFile


class Pairs(NamedTuple):
    """Files of the master and numbers of the sequence in the order in which the splitter is to take them."""

    masters: list[InputFile]
    numbers: list[InputFile]


def keeps_numbers(rule: SplitRule) -> bool:
    """Whether inputs keep their numbers: jobs have fixed numbers of files or events."""
    return bool(rule.get_int("NF") or rule.get_int("NE")) and not rule.get_int("DY")


def pair_again(
    masters: Sequence[InputFile],
    master_jobs: Mapping[int, int],
    numbers: Sequence[InputFile],
    number_jobs: Mapping[int, int],
    *,
    ratio: float = 1.0,
    per_job: int | None = None,
) -> Pairs:
    """Order both so that the files which a job had meet the numbers which it had.

    The mappings give the job that used a file last, by file id; files that no job had are not in them. Master files
    of earlier jobs come first, by job. Each job takes its own numbers, then numbers that nobody had, then those of
    jobs that are not among the masters' (they may come back later). `ratio` and `per_job` say how many numbers a job
    gets: for each file of the master, or altogether.
    """
    again = sorted((f for f in masters if f.file_id in master_jobs), key=lambda f: (master_jobs[f.file_id], f.file_id))
    fresh = [f for f in masters if f.file_id not in master_jobs]
    jobs = [(job, len(list(some))) for job, some in groupby(again, key=lambda f: master_jobs[f.file_id])]
    wanted = {job for job, _ in jobs}
    own: dict[int, list[InputFile]] = {}
    unused, reserved = [], []
    for number in sorted(numbers, key=lambda f: f.file_id):
        job = number_jobs.get(number.file_id)
        if job is None:
            unused.append(number)
        elif job in wanted:
            own.setdefault(job, []).append(number)
        else:
            reserved.append(number)
    spare = iter([*unused, *reserved])
    ordered: list[InputFile] = []
    for job, files in jobs:
        need = per_job or math.ceil(ratio * files)
        mine = own.get(job, [])
        ordered += [*mine[:need], *islice(spare, max(0, need - len(mine)))]
    # What jobs had more than they need now is the last to be given to others.
    over = [n for job, files in jobs for n in own.get(job, [])[per_job or math.ceil(ratio * files) :]]
    return Pairs([*again, *fresh], [*ordered, *spare, *over])
