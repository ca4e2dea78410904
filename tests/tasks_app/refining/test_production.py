from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tasks_app.params.schema import parse
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.base import ParentView, Policy, Refined, refine, refiner_for
from tasks_app.refining.policy import Conversion, Draws
from tasks_app.refining.production import data_type, is_database_release, refine_production
from tests.tasks_app.params import dictionaries as d

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
PARENT = ParentView(5, "done", frozenset({"mc23.1.P.recon.AOD.e1", "mc23.1.P.recon.ESD.e1"}))
READY = Conversion(pool_events=1000, events_in_pool=10, consumers=3, sites=2)


def refined(raw: dict[str, Any], **more: Any) -> Refined:
    return refine(parse(raw), **{"task_id": 10_000_007, "user": "prodmaster", "now": NOW, **more})


def rule_of(result: Refined) -> SplitRule:
    return SplitRule.parse(str(result.task["splitrule"]))


def generation(**changes: Any) -> dict[str, Any]:
    return d.generation(vo="atlas", **changes)


def reconstruction(**changes: Any) -> dict[str, Any]:
    return d.reconstruction(vo="atlas", **changes)


def by_events(**changes: Any) -> dict[str, Any]:
    """A task that may be one of event service."""
    return reconstruction(mergeOutput=False, mergeSpec=None, useRealNumEvents=True, **changes)


def test_managed_tasks_and_those_of_type_prod_are_production() -> None:
    assert refiner_for("atlas", "managed", "anal") is refine_production
    assert refiner_for("atlas", "ptest", "prod") is refine_production


def test_production_registers_its_datasets_in_the_usual_system() -> None:
    rule = rule_of(refined(generation()))
    assert rule.get_str("DE") == "rucio"


@pytest.mark.parametrize(("given", "wanted"), [({}, 0), ({"noThrottle": True}, None), ({"noThrottle": False}, 0)])
def test_failed_attempts_throttle_a_task_unless_it_says_otherwise(given: dict[str, Any], wanted: int | None) -> None:
    assert refined(generation(**given)).task["numthrottled"] == wanted


@pytest.mark.parametrize(("draw", "on"), [(0.2, True), (0.8, False)])
def test_changes_of_state_are_published_for_a_share_of_the_tasks(draw: float, on: bool) -> None:
    policy = Policy(push_status_percent=50, draws=Draws(push_status=draw))
    assert rule_of(refined(generation(), policy=policy)).flag("PC") is on


# --- names, datasets ---


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("a.${SN}.root", "a.${SN}.root.1"), ("a.${SN}.root.3", "a.${SN}.root.3"), ("a.${SN}", "a.${SN}.1")],
)
def test_file_names_end_in_a_version(given: str, wanted: str) -> None:
    items = [d.template("output", f"--out={given}", "o")]
    assert [t.filenametemplate for t in refined(generation(jobParameters=items, log=None)).templates] == [wanted]


@pytest.mark.parametrize(
    ("at_end", "unmerged"), [(False, "panda.um.AOD.r1._${SN}.root.1"), (True, "AOD.r1._${SN}.root.panda.um")]
)
def test_unmerged_names_have_a_version_unless_their_mark_is_at_the_end(at_end: bool, unmerged: str) -> None:
    names = [t.filenametemplate for t in refined(reconstruction(umNameAtEnd=at_end)).templates]
    assert "AOD.r1._${SN}.root.1" in names and unmerged in names


def test_a_database_release_goes_to_every_job() -> None:
    items = [
        d.template("input", "--in=${IN}", "data.HITS.h1"),
        d.template("input", "--db=${DBR}", "ddo.000001.Atlas.Ideal.DBRelease.v310701", attributes="cvmfs"),
        d.template("input", "--mb=${MB}", "minbias.HITS.h2", ratio=2),
    ]
    datasets = refined(reconstruction(jobParameters=items, mergeOutput=False)).datasets
    assert [s.attributes for s in datasets[:3]] == ["", "cvmfs,repeat,nosplit", "ratio=2"]


def test_a_database_release_that_is_the_master_is_split() -> None:
    items = [d.template("input", "--db=${DBR}", "ddo.000001.Atlas.Ideal.DBRelease.v310701")]
    assert refined(reconstruction(jobParameters=items, mergeOutput=False)).datasets[0].attributes == ""


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("ddo:ddo.1.A.Ideal.DBRelease.v1", True), ("x.DBRelease.v1", True), ("mc.DBReleaser.v1", False)],
)
def test_database_releases_are_known_by_name(name: str, is_one: bool) -> None:
    assert is_database_release(name) is is_one


def test_masters_are_checked_against_what_the_parent_made() -> None:
    datasets = refined(reconstruction(), parent=PARENT).datasets
    assert [s.attributes for s in datasets[:2]] == ["cc", "repeat,ratio=4"]
    assert refined(reconstruction(), parent=ParentView(10_000_007, "running")).datasets[0].attributes == ""


def merging(**changes: Any) -> dict[str, Any]:
    items = [
        d.template("input", "--in=${IN}", "mc23.1.P.recon.AOD.e1"),
        d.template("input", "--more=${IN_B}", "mc23.1.P.recon.ESD.e1"),
        d.template("output", "--out=AOD.${SN}", "mc23.1.P.merge.AOD.e1"),
    ]
    return reconstruction(jobParameters=items, mergeOutput=False, **{"processingType": "merge", **changes})


def test_what_a_merge_task_makes_superfluous_is_transient() -> None:
    assert refined(merging(), parent=PARENT).transient == ("mc23.1.P.recon.AOD.e1",)
    assert refined(merging()).transient == ()
    assert refined(merging(processingType="reco"), parent=PARENT).transient == ()


@pytest.mark.parametrize(("name", "wanted"), [("mc:a.b.c.d.AOD.x/", "AOD"), ("a.b.c.d.AOD", "AOD"), ("a.b.c", None)])
def test_the_type_of_data_is_a_field_of_the_name(name: str, wanted: str | None) -> None:
    assert data_type(name) == wanted


# --- event service ---


def test_a_share_of_tasks_becomes_event_service() -> None:
    raw = by_events(esFraction=0.3)
    policy = Policy(draws=Draws(event_service=0.2), conversion=Conversion(consumers=3, sites=2))
    result = refined(raw, policy=policy)
    rule = rule_of(result)
    assert (result.task["eventservice"], result.task["corecount"]) == (1, 0)
    assert [rule.get_int(code) for code in ("ES", "EC", "NS", "XA", "XJ")] == [1, 3, 2, 1, 0]
    assert all(rule.flag(code) for code in ("ND", "XF")) and not any(rule.flag(code) for code in ("RE", "ME", "SC"))
    assert result.job_params_template.endswith("--eventService=True")
    other = refined(raw, policy=replace(policy, draws=Draws(event_service=0.3)))
    assert other.task["eventservice"] == 0 and "eventService" not in other.job_params_template


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({}, True),
        ({"pool_events": None}, False),
        ({"events_in_pool": 1000}, False),
        ({"most_pending": 2, "pending": 1}, True),
        ({"most_pending": 2, "pending": 2}, False),
        ({"least_priority": 450}, True),
        ({"least_priority": 451}, False),
        ({"most_priority": 449}, False),
        ({"since_last_s": 299.0}, False),
        ({"since_last_s": 300.0}, True),
    ],
)
def test_a_convertible_task_fills_the_pool_of_events(changes: dict[str, Any], allowed: bool) -> None:
    raw = by_events(esConvertible=True)
    result = refined(raw, policy=Policy(conversion=replace(READY, **changes)))
    assert result.task["eventservice"] == int(allowed)


def test_a_task_that_may_not_be_converted_stays_what_it_is() -> None:
    assert refined(reconstruction(), policy=Policy(conversion=READY)).task["eventservice"] == 0
    own = d.event_service(vo="atlas", esConvertible=True)
    assert rule_of(refined(own, policy=Policy(conversion=READY))).get_int("EC") == 2


@pytest.mark.parametrize(
    "raw", [generation(), by_events(esFraction=1.0), d.event_service(vo="atlas")], ids=["gen", "reco", "es"]
)
def test_refining_what_was_stored_gives_the_same(raw: dict[str, Any]) -> None:
    policy = Policy(draws=Draws(event_service=0.0))
    first = refined(raw, policy=policy)
    assert first.params is not None
    assert refined(dict(first.params), policy=policy) == first


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("simul", {}, 1000),
        ("pile", {}, 1500),
        ("reco", {}, 1000),
        ("evgen", {}, 0),
        ("pile", {"baseRamCount": 300}, 300),
    ],
)
def test_the_memory_of_a_job_whatever_its_cores_is_that_of_its_processing_type(
    kind: str, given: dict[str, Any], wanted: int
) -> None:
    assert refined(reconstruction(processingType=kind, **given)).task["baseramcount"] == wanted
