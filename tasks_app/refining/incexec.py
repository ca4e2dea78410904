"""Refining a task again for incremental execution: which datasets are new, gone or back, and what the task keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tasks_app.domain.jumbo_use import use_of
from tasks_app.params.resubmission import Changes, changed_rule
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.values import DatasetSpec, Refined

REMOVED = "removed"
REMOVABLE = frozenset({"input", "pseudo_input"})
"""Types of which a dataset is removed when the parameters no longer name it. Outputs, and what agents made from
templates, stay: their files exist."""

MEASURED = frozenset(
    [
        "ramcount",
        "ramunit",
        "baseramcount",
        "walltime",
        "walltimeunit",
        "cputime",
        "cputimeunit",
        "outdiskcount",
        "outdiskunit",
        "workdiskcount",
        "workdiskunit",
        "iointensity",
        "iointensityunit",
        "diskio",
        "diskiounit",
    ]
)
"""Columns that scouts or jobs may have measured, each with its unit."""
AT_WORK = frozenset({"corecount", "basewalltime", "cpuefficiency", "goal"})
"""Columns that may have been changed on the task while it was open, under `ATTRIBUTES`, and that running again cannot change."""
KEPT = MEASURED | AT_WORK | {"starttime", "attemptnr", "eventservice", "reqid", "parent_tid", "numthrottled"}
PLACES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "cloud": frozenset({"cloud"}),
        "nucleus": frozenset({"cloud"}),
        "site": frozenset({"site", "includedSite", "excludedSite"}),
    }
)
"""Columns that a broker or the command `reassign` may have chosen, with the changes that choose another."""
REFINED = "requesttype"
"""A column that every task has once it was refined. One that was killed before has chosen nothing."""
FROM_NEW_RULE = ("LS",)
"""Codes that follow from changed parameters: which sites are included or excluded."""


@dataclass(frozen=True, slots=True)
class OldDataset:
    """A dataset of the task as it is stored."""

    id: int
    datasetname: str
    type: str
    status: str | None = None
    master_id: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Old datasets against new ones, by name and type. Places are those in `Refined.datasets`.

    `inserted`: places of datasets that the task did not have. `removed`: ids of those that it no longer names.
    `reappeared`: ids, by place, of datasets that had been removed; they are fed anew. `unchanged`: ids by place; their
    counters stay. `new_masters`: for secondaries that stay, the place of the master that they now belong to, by id.
    """

    inserted: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    reappeared: Mapping[int, int] = field(default_factory=dict)
    unchanged: Mapping[int, int] = field(default_factory=dict)
    new_masters: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the datasets stay as they are."""
        return not (self.inserted or self.removed or self.reappeared or self.new_masters)


def compare(old: Sequence[OldDataset], new: Sequence[DatasetSpec]) -> Comparison:
    """Compare the datasets of a task with those that refining gives now.

    Of several old datasets with one name and type, the first counts; the others are left alone.
    """
    known: dict[tuple[str, str], OldDataset] = {}
    for dataset in old:
        known.setdefault((dataset.datasetname, dataset.type), dataset)
    named = {(spec.datasetname, spec.type) for spec in new}
    inserted: list[int] = []
    reappeared: dict[int, int] = {}
    unchanged: dict[int, int] = {}
    new_masters: dict[int, int] = {}
    ids = {place: known[(s.datasetname, s.type)] for place, s in enumerate(new) if (s.datasetname, s.type) in known}
    for place, spec in enumerate(new):
        before = ids.get(place)
        if before is None:
            inserted.append(place)
            continue
        (reappeared if before.status == REMOVED else unchanged)[place] = before.id
        master = ids.get(spec.master) if spec.master is not None else None
        if spec.master is not None and (master is None or master.id != before.master_id):
            new_masters[before.id] = spec.master
    removed = [
        dataset.id
        for dataset in old
        if dataset.type in REMOVABLE and dataset.status != REMOVED and (dataset.datasetname, dataset.type) not in named
    ]
    return Comparison(tuple(inserted), tuple(removed), reappeared, unchanged, new_masters)


def task_columns_again(refined: Refined, old: Mapping[str, object], changes: Changes) -> dict[str, object]:
    """Columns of the task: the new ones, but what was measured or chosen before stays.

    `old` holds the present values by the same names. The split rule is the old one with the changes, so that scouts
    run only if they had not run yet. Raises SplitRuleError when the old rule cannot be read.
    """
    columns = dict(refined.task)
    for name in KEPT:
        if old.get(name) is not None:
            columns[name] = old[name]
    if old.get(REFINED) is not None:
        columns.update({name: old[name] for name, others in PLACES.items() if others.isdisjoint(changes)})
    if "ramCount" in changes:
        columns.update({name: refined.task[name] for name in ("ramcount", "ramunit")})
    rule = rule_again(str(old.get("splitrule") or ""), str(refined.task["splitrule"]), changes)
    columns["splitrule"] = str(rule)
    columns["usejumbo"] = use_of(rule.get_int("NJ"), str(old.get("usejumbo") or "") or None)
    return columns


def rule_again(old: str, new: str, changes: Changes) -> SplitRule:
    """The old rule with the changes; scouts run again only where they were still to run."""
    rule, fresh = changed_rule(SplitRule.parse(old), changes), SplitRule.parse(new)
    for code in FROM_NEW_RULE:
        value = fresh.get_str(code)
        rule = rule.without(code) if value is None else rule.having(code, value)
    return rule
