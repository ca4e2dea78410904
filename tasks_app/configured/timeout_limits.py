"""The limits of time-outs that hold in this installation, as values and as SQL.

`limit(name)` is what JEDI_LIMITS sets, else the parameter in the configuration (which may differ by label, workflow or group,
and by VO), else the row's own setting in the environment, else the documents' default, which the table has.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import MappingProxyType

from django.conf import settings
from django.core.checks import Error

from brokerage_app.grid.configured import configuration
from tasks_app.configured import site_limits
from tasks_app.configured.timeout_table import PARAMETERS, TABLE
from tasks_app.domain import job_timeouts, throttling
from tasks_app.domain.job_timeouts import TimeoutSettings


def limit(name: str, suffix: str = "", *, vo: str = "") -> timedelta:
    """The limit that holds here, for what it may differ by (the label of a task, ...) and for a VO.

    Raises KeyError for an unknown name.
    """
    row = TABLE[name]
    seconds = site_limits.given().get(name)
    if seconds is not None:
        return timedelta(seconds=seconds)
    if name in PARAMETERS:
        found = configuration().source(*PARAMETERS[name], suffix, vo=vo)
        if found.row is not None:
            return timedelta(hours=found.value)
    set_here = getattr(settings, row.setting) if row.setting else None
    return row.default if set_here is None else timedelta(seconds=set_here)


def variants(name: str) -> list[tuple[str, str]]:
    """What the limit differs by here, besides the general one: (suffix, VO) for each row of the configuration."""
    if name not in PARAMETERS or name in site_limits.given():
        return []
    return [pair for pair in configuration().variants(*PARAMETERS[name]) if any(pair)]


def limit_sql(name: str, conditions: Sequence[tuple[str, str]], vo: str) -> str:
    """The limit as SQL of an interval, which differs by row as the configuration says.

    `conditions` are pairs of a suffix and the SQL that holds for the rows that it concerns; the first that holds counts.
    `vo` is the expression of a row's VO.
    """
    found = variants(name)
    cases = []
    for of in [*sorted({of for _, of in found if of}), ""]:
        mine = f"{vo} = {sql_text(of)} AND " if of else ""
        cases += [(f"{mine}{where}", limit(name, suffix, vo=of)) for suffix, where in conditions]
        if of:
            cases.append((f"{mine}TRUE", limit(name, vo=of)))
    general = _interval(limit(name))
    whens = " ".join(f"WHEN {where} THEN {_interval(length)}" for where, length in cases)
    return f"(CASE {whens} ELSE {general} END)" if whens else general


def stuck_sql() -> str:
    """How long the task `t` may do nothing, as SQL: PENDING_TIMEOUT differs by label and VO."""
    labels = sorted({label for label, _ in variants("task.stuck") if label})
    return limit_sql("task.stuck", [(label, f"t.prodsourcelabel = {sql_text(label)}") for label in labels], "t.vo")


def _interval(length: timedelta) -> str:
    return f"interval '{length.total_seconds()} seconds'"


def sql_text(value: str) -> str:
    """A text as a literal, for statements that get parameters too."""
    return "'" + value.replace("'", "''").replace("%", "%%") + "'"


def job_settings(vo: str = "") -> TimeoutSettings:
    """The limits of all job time-outs for jobs of a VO, for the decision."""
    names = [rule.name for rule in job_timeouts.TIMEOUTS]
    suffixes = {name: {suffix for suffix, _ in variants(f"job.{name}") if suffix} for name in names}
    return TimeoutSettings(
        limits=MappingProxyType({name: limit(f"job.{name}", vo=vo) for name in names}),
        by={
            name: {suffix: limit(f"job.{name}", suffix, vo=vo) for suffix in found}
            for name, found in suffixes.items()
            if found
        },
    )


def check_limits(**_: object) -> list[Error]:
    """Django's check that JEDI_LIMITS names only what there is."""
    return [
        Error(
            f"JEDI_LIMITS sets {name}, which is neither a time-out nor one of {', '.join(site_limits.COMPONENTS)}",
            id="tasks.E001",
        )
        for name in site_limits.unknown(site_limits.given(), TABLE)
    ]


def pending_wait(label: str, priority: int) -> timedelta:
    """How long a task rests in pending: the quick retry if the installation has one, else by its label and priority."""
    quick = limit("task.quick_retry")
    if quick > timedelta():
        return quick
    return throttling.pending_wait(label, priority)
