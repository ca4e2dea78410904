from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.schema import parse
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.analysis import refine_analysis
from tasks_app.refining.base import CannotRefine, NotYet, ParentView, Policy, Refined, refine, refiner_for
from tasks_app.refining.policy import Draws, Transforms, chosen
from tests.tasks_app.params import dictionaries as d

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
TRANSFORMS = Transforms("runA", "runC", "runG", "buildA", "buildG", "pre", "merge")
POLICY = Policy(transforms=TRANSFORMS)


def refined(raw: dict[str, Any], **more: Any) -> Refined:
    return refine(parse(raw), **{"task_id": 10_000_007, "user": "Mia Muon", "now": NOW, "policy": POLICY, **more})


def stored(raw: dict[str, Any], **more: Any) -> dict[str, Any]:
    params = refined(raw, **more).params
    assert params is not None
    return dict(params)


def rule_of(raw: dict[str, Any], **more: Any) -> SplitRule:
    return SplitRule.parse(str(refined(raw, **more).task["splitrule"]))


def simple(**changes: Any) -> dict[str, Any]:
    return d.smallest(vo="atlas", **changes)


@pytest.mark.parametrize(
    ("label", "kind", "is_ours"),
    [("user", "anal", True), ("test", "anal", True), ("test", "prod", False), ("managed", "anal", False)],
)
def test_which_tasks_are_analysis(label: str, kind: str, is_ours: bool) -> None:
    assert (refiner_for("atlas", label, kind) is refine_analysis) is is_ours
    assert refiner_for("lab", label, kind) is not refine_analysis


# --- transformations ---


@pytest.mark.parametrize(
    ("kind", "run", "build"),
    [
        ("panda-client-2.2.0-jedi-run", "runG", "buildG"),
        ("panda-client-2.2.0-jedi-athena", "runA", "buildA"),
        ("panda-client-2.2.0-jedi-athena-trf", "runA", "buildA"),
        ("panda-client-2.2.0-jedi-cont", "runC", "buildG"),
        ("athenaeum", "runG", "buildG"),
    ],
)
def test_the_kind_of_processing_chooses_the_transformations(kind: str, run: str, build: str) -> None:
    result = refined(d.analysis(processingType=kind))
    assert result.task["transpath"] == run
    assert stored(d.analysis(processingType=kind))["buildSpec"]["transPath"] == build


def test_a_transformation_that_the_task_names_is_kept() -> None:
    raw = d.analysis(transPath="own", buildSpec={"jobParameters": "x", "transPath": "own_build"})
    assert (refined(raw).task["transpath"], stored(raw)["buildSpec"]["transPath"]) == ("own", "own_build")


def test_merge_jobs_get_a_transformation() -> None:
    raw = d.analysis(mergeOutput=True, mergeSpec={"jobParameters": "${TRN_OUTPUT:OUTPUT}"})
    assert stored(raw)["mergeSpec"]["transPath"] == "merge"


# --- what is filled in ---


@pytest.mark.parametrize(
    ("changes", "policy", "key", "value"),
    [
        ({}, {}, "maxAttempt", 10),
        ({"maxAttempt": 2}, {}, "maxAttempt", 2),
        ({}, {}, "maxFailure", 3),
        ({}, {}, "scoutSuccessRate", 5),
        ({}, {}, "cpuTimeUnit", "HS06sPerEvent"),
        ({}, {}, "allowInputLAN", "use"),
        ({"useLocalIO": 1}, {}, "allowInputLAN", None),
        ({"transUses": "Atlas-20.20.8"}, {}, "useLocalIO", 1),
        ({"transUses": "Atlas-20.20.8"}, {}, "allowInputLAN", None),
        ({"transUses": "Atlas-20.21.1"}, {}, "useLocalIO", None),
        ({"transUses": "Atlas-21.0.15"}, {}, "useLocalIO", None),
        ({}, {}, "maxCoreCount", 16),
        ({}, {"max_core_count": 64}, "maxCoreCount", 64),
        ({}, {}, "maxWalltime", None),
        ({}, {"target_walltime_h": 8}, "maxWalltime", 8),
        ({}, {}, "outDiskCount", 500),
        ({}, {"out_disk_kb": 90}, "outDiskCount", 90),
        ({"outDiskCount": 3, "outDiskUnit": "MB"}, {}, "outDiskUnit", "MB"),
        ({}, {}, "baseWalltime", 60),
        ({"processingType": "x-athena"}, {}, "baseWalltime", None),
        ({"container_name": "img"}, {}, "baseWalltime", None),
        ({"skipScout": True}, {}, "skipScout", None),
        ({"skipScout": True, "official": True}, {}, "skipScout", True),
        (
            {"jobParameters": [d.constant("-x --containerImage docker://a/b:1 -y")]},
            {},
            "container_name",
            "docker://a/b:1",
        ),
        ({"architecture": "x86_64-el9-gcc13-opt+docker://a/b:1"}, {}, "container_name", "docker://a/b:1"),
        ({"container_name": "own", "architecture": "x+other"}, {}, "container_name", "own"),
    ],
)
def test_what_an_analysis_gets(changes: dict[str, Any], policy: dict[str, Any], key: str, value: object) -> None:
    assert stored(simple(**changes), policy=replace(POLICY, **policy)).get(key) == value


def test_memory_is_two_gigabytes_a_core() -> None:
    task = refined(simple()).task
    assert (task["ramcount"], task["ramunit"], task["outdiskcount"], task["outdiskunit"]) == (
        2000,
        "MBPerCore",
        500,
        "kB",
    )


def test_raw_data_is_copied_to_the_local_disk() -> None:
    items = [d.template("input", "${IN/T}", "data22.0042.physics_Main.daq.RAW/")]
    assert rule_of(simple(noInput=False, jobParameters=items)).flag("LI")
    other = [d.template("input", "${IN/T}", "data22.0042.physics_Main.merge.DRAW/")]
    assert not rule_of(simple(noInput=False, jobParameters=other)).flag("LI")


# --- priorities ---


@pytest.mark.parametrize(
    ("changes", "policy", "wanted"),
    [
        ({}, {}, (1000, 1000)),
        ({"taskPriority": 950}, {}, (950, 950)),
        ({"taskPriority": 1100}, {}, (1100, 1100)),
        ({"taskPriority": 200}, {}, (200, 1000)),
        ({"taskPriority": 1000, "currentPriority": 5000}, {}, (1000, 1000)),
        ({}, {"super_users": frozenset({"Mia Muon"})}, (1000, 1500)),
        ({"currentPriority": 1700}, {"super_users": frozenset({"Mia Muon"})}, (1000, 1700)),
        ({}, {"super_group_users": frozenset({"Mia Muon"})}, (1000, 1000)),
        ({"workingGroup": "GP_TOY"}, {"super_group_users": frozenset({"Mia Muon"})}, (1000, 1500)),
        ({}, {"move_input_percent": 10.0, "draws": Draws(move_input=0.05)}, (1001, 1000)),
        ({}, {"move_input_percent": 10.0, "draws": Draws(move_input=0.2)}, (1000, 1000)),
    ],
)
def test_priorities_of_analysis(changes: dict[str, Any], policy: dict[str, Any], wanted: tuple[int, int]) -> None:
    task = refined(simple(**changes), policy=replace(POLICY, **policy)).task
    assert (task["taskpriority"], task["currentpriority"]) == wanted


@given(given_priority=st.none() | st.integers(-5000, 5000), current=st.none() | st.integers(-5000, 5000))
def test_an_ordinary_analysis_never_leaves_the_usual_band(given_priority: int | None, current: int | None) -> None:
    task = refined(simple(taskPriority=given_priority, currentPriority=current)).task
    found = task["currentpriority"]
    assert isinstance(found, int) and 900 <= found <= 1100


# --- chance ---


@pytest.mark.parametrize(
    ("percent", "draw", "on"),
    [(None, 0.0, None), (0, 0.0, False), (100, 0.999999, True), (30, 0.29, True), (30, 0.3, False)],
)
def test_a_percentage_chooses_by_the_number_drawn(percent: float | None, draw: float, on: bool | None) -> None:
    assert chosen(percent, draw) is on


@pytest.mark.parametrize("draw", [0.1, 0.9])
def test_messages_are_sent_for_a_share_of_the_tasks(draw: float) -> None:
    policy = replace(POLICY, push_status_percent=50, draws=Draws(push_status=draw))
    assert rule_of(simple(), policy=policy).flag("PC") == (draw < 0.5)


# --- datasets ---


def test_outputs_go_straight_to_their_datasets() -> None:
    result = refined(d.analysis())
    assert {s.type for s in result.datasets} == {"input", "pseudo_input", "output", "log"}
    assert rule_of(d.analysis()).flag("UB")


def test_unmerged_outputs_have_datasets_of_their_own() -> None:
    raw = d.analysis(mergeOutput=True, mergeSpec={"jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG:LOG}"})
    kinds = [(s.datasetname, s.type, s.streamname) for s in refined(raw).datasets if "trn" in s.type]
    assert kinds == [
        ("panda.um.user.mia.plots.v1_hist.10000007", "trn_output", "TRN_OUTPUT0"),
        ("panda.um.user.mia.plots.v1.log.10000007", "trn_log", "TRN_LOG0"),
    ]


def test_the_request_has_the_number_that_the_user_counts_by() -> None:
    assert refined(simple(), policy=Policy(jobset_id=77)).task["reqid"] == 77
    assert refined(simple()).task["reqid"] == 10_000_007


@pytest.mark.parametrize(("value", "dataset"), [("a~${SN}", "out"), ("a.${SN}", "out#1"), ("a.${SN}", "sc:out=x/")])
def test_names_that_storage_would_not_take_break_the_task(value: str, dataset: str) -> None:
    with pytest.raises(CannotRefine, match="is the name of an output and contains"):
        refined(simple(jobParameters=[d.template("output", value, dataset)]))


def test_a_database_release_besides_other_inputs_goes_to_every_job() -> None:
    release = "ddo.000001.Atlas.Ideal.DBRelease.v310701"
    items = [d.template("input", "${IN}", "a"), d.template("input", "${DBR}", release)]
    found = refined(simple(noInput=False, jobParameters=items)).datasets
    assert {s.datasetname: s.attributes for s in found if s.type == "input"} == {"a": "", release: "repeat,nosplit"}


# --- preprocessing ---


def picking(**changes: Any) -> dict[str, Any]:
    items = [
        d.template("input", "${IN/T}", "%%INDS%%", files="%%INLFNLIST%%"),
        d.constant("--events=%%EVENTS%%"),
        d.template("output", "x.${SN}", "user.out", hidden=True),
    ]
    spec = {"jobParameters": "--pick --sourceURL ${SURL}", "prodSourceLabel": "user"}
    return simple(
        noInput=False,
        jobParameters=items,
        preproSpec=spec,
        sourceURL="https://c:1",
        processingType="x-evp",
        log=d.log(),
        **changes,
    )


def test_preprocessing_comes_first_and_alone() -> None:
    result = refined(picking())
    assert [(s.datasetname, s.type) for s in result.datasets] == [
        ("pseudo_dataset", "pp_input"),
        ("test.log.t1", "pp_log"),
    ]
    assert result.job_params_template == "--pick --sourceURL https://c:1"
    assert rule_of(picking()).get_int("UP") == 1
    assert stored(picking())["preproSpec"]["transPath"] == "pre"


def test_what_preprocessing_found_is_what_the_task_reads() -> None:
    found = {"INDS": "data.a,data.b", "INLFNLIST": "f1,f2", "EVENTS": "1 2"}
    result = refined(picking(), preprocessed=found)
    assert [s.datasetname for s in result.datasets if s.type == "input"] == ["data.a", "data.b"]
    assert "--events=1 2" in result.job_params_template
    assert SplitRule.parse(str(result.task["splitrule"])).get_int("UP") == 2
    assert dict(result.params or {})["jobParameters"][0]["dataset"] == "%%INDS%%"  # type: ignore[index]


def test_a_mark_that_preprocessing_did_not_fill_breaks_the_task() -> None:
    with pytest.raises(CannotRefine, match="%%INLFNLIST%% is used"):
        refined(picking(), preprocessed={"INDS": "a", "EVENTS": ""})


def test_preprocessing_needs_a_log() -> None:
    with pytest.raises(CannotRefine, match="needs log"):
        refined({**picking(), "log": None})


def test_an_analysis_waits_for_its_parent_before_its_preprocessing() -> None:
    with pytest.raises(NotYet):
        refined(picking(), parent=ParentView(5, "running"))


# --- again ---


@pytest.mark.parametrize("raw", [d.analysis(), simple(), picking()], ids=["prun", "simple", "picking"])
def test_refining_what_was_stored_gives_the_same(raw: dict[str, Any]) -> None:
    first = refined(raw)
    assert first.params is not None
    assert refined(dict(first.params)) == first
