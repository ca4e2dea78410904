from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tasks_app.params.dataset_attributes import is_tracked
from tasks_app.params.placeholders import compile_template
from tasks_app.params.schema import parse
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.base import (
    CannotRefine,
    NotYet,
    ParentView,
    Refined,
    Request,
    Rule,
    containers_of,
    item_of_stream,
    refine,
    refiner_for,
)
from tasks_app.refining.generic import refine_generic
from tests.tasks_app.params import dictionaries as d
from tests.tasks_app.params.test_amounts import steps_of

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def refined(raw: dict[str, Any], **more: Any) -> Refined:
    rules = (Rule(None, None, None, refine_generic),)
    return refine(parse(raw), **{"task_id": 10_000_007, "user": "Mia Muon", "now": NOW, "rules": rules, **more})


def rule_of(result: Refined) -> SplitRule:
    return SplitRule.parse(str(result.task["splitrule"]))


@pytest.mark.parametrize("make", d.ALL, ids=lambda make: make.__name__)
def test_the_usual_kinds_of_task_can_be_refined(make: Callable[[], dict[str, Any]]) -> None:
    result = refined(make())
    places = range(len(result.datasets))
    assert all(template.dataset in places and template.serialnr >= 1 for template in result.templates)
    assert all(dataset.master is None or dataset.master in places for dataset in result.datasets)
    compile_template(result.job_params_template)


def test_refining_twice_gives_the_same_task() -> None:
    assert refined(d.reconstruction()) == refined(d.reconstruction())


# --- columns ---


def test_what_a_task_leaves_out_comes_from_the_installation() -> None:
    task = refined(d.smallest()).task
    assert (task["vo"], task["tasktype"], task["transpath"]) == ("local", "anal", "run_command")
    assert (task["corecount"], task["ramcount"], task["ramunit"]) == (1, 2000, "MBPerCore")
    assert (task["taskpriority"], task["currentpriority"]) == (1000, 1000)
    assert (task["cpuefficiency"], task["basewalltime"]) == (90, 600)
    assert (task["reqid"], task["parent_tid"]) == (10_000_007, 10_000_007)


def test_what_a_task_says_is_kept() -> None:
    task = refined(d.generation(currentPriority=700, goal=95.5, ttcrTimestamp="2026-06-01 10:00:00.5")).task
    assert (task["vo"], task["tasktype"], task["transpath"]) == ("lab", "prod", "toy_gen")
    assert (task["taskpriority"], task["currentpriority"], task["goal"]) == (600, 700, 955)
    assert (task["ramcount"], task["ramunit"], task["cputime"]) == (1500, "MBPerCore", 900)
    assert task["ttcrequested"] == datetime(2026, 6, 1, 10, 0, 0, 500_000, UTC)
    assert task["starttime"] == NOW


def test_the_owner_is_who_the_caller_says() -> None:
    assert refined(d.generation(userName="somebody else")).task["username"] == "Mia Muon"


def test_memory_without_a_unit_is_in_megabytes() -> None:
    task = refined(d.smallest(ramCount=3000)).task
    assert (task["ramcount"], task["ramunit"]) == (3000, "MB")


def test_the_working_group_stands_for_the_cloud_when_it_fits() -> None:
    assert refined(d.smallest(workingGroup="GP_TOY")).task["cloud"] == "GP_TOY"
    assert refined(d.smallest(workingGroup="GP_TOO_LONG_FOR_IT")).task["cloud"] is None


def test_an_architecture_object_is_stored_as_json() -> None:
    wanted = '{"cpu_specs":[{"arch":"x86_64"}],"sw_platform":"x86_64-el9-gcc13-opt"}'
    assert refined(d.event_service()).task["architecture"] == wanted


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({}, 0),
        ({"nEventsPerWorker": 1}, 1),
        ({"useJobCloning": "runonce"}, 2),
        ({"fineGrainedProc": True}, 3),
    ],
)
def test_kinds_of_event_service(changes: dict[str, Any], mode: int) -> None:
    assert refined(d.smallest(**changes)).task["eventservice"] == mode


def test_equal_payloads_have_equal_marks() -> None:
    mark = refined(d.smallest()).task["requesttype"]
    assert mark == refined(d.smallest(nEvents=5), task_id=8).task["requesttype"]
    assert mark != refined(d.smallest(jobParameters=[d.constant("ls")])).task["requesttype"]
    assert len(str(mark)) == 32


# --- split rule ---


@pytest.mark.parametrize(
    ("changes", "code", "value"),
    [
        ({"includedSite": ["A"]}, "LS", 1),
        ({"excludedSite": ["A"]}, "LS", 2),
        ({"includedSite": ["A"], "excludedSite": ["B"]}, "LS", 3),
        ({"excludedSite": []}, "LS", None),
        ({"buildSpec": {"jobParameters": "x"}}, "UB", 1),
        ({"preproSpec": {"jobParameters": "x"}}, "UP", 1),
        ({"walltime": -100}, "LC", 1),
        ({}, "PC", None),
        ({"pushStatusChanges": True}, "PC", 1),
        ({"pushStatusChanges": False}, "PC", None),
        ({"fineGrainedProc": True}, "XA", 1),
    ],
)
def test_codes_that_depend_on_the_task(changes: dict[str, Any], code: str, value: int | None) -> None:
    assert rule_of(refined(d.smallest(**changes))).get_int(code) == value


def test_offsets_of_numbers_are_kept_in_the_rule() -> None:
    items = [
        d.template("number", "--first=${FIRSTEVENT}", offset=100),
        d.template("number", "--seed=${RNDMSEED}", offset=200),
    ]
    rule = rule_of(refined(d.smallest(jobParameters=items)))
    assert (rule.get_int("FT"), rule.get_int("RS")) == (100, 200)


# --- datasets, templates, text ---


def test_a_task_without_input_has_a_pseudo_master_and_seeds() -> None:
    result = refined(d.generation())
    assert [(s.datasetname, s.type, s.streamname) for s in result.datasets] == [
        ("pseudo_dataset", "pseudo_input", None),
        ("mc.EVNT.g1", "output", "OUTPUT0"),
        ("mc.log.g1", "log", "LOG0"),
        ("RNDMSEED", "random_seed", "RNDMSEED"),
    ]
    assert [(t.filenametemplate, t.streamname, t.serialnr) for t in result.templates] == [
        ("EVNT.700001._${SN}.root", "OUTPUT0", 1),
        ("log.700001._${SN}.job.log.tgz", "LOG0", 1),
    ]
    assert result.job_params_template == (
        "--energy=13000 --process=700001 --firstEvent=${FIRSTEVENT} --maxEvents=${MAXEVENTS}"
        " --seed=${RNDMSEED} --out=${OUTPUT0}"
    )


def test_a_secondary_belongs_to_the_master_and_keeps_its_attributes() -> None:
    datasets = refined(d.reconstruction(mergeOutput=False)).datasets
    assert (datasets[0].datasetname, datasets[0].master, datasets[0].attributes) == ("data.HITS.h1", None, "")
    assert (datasets[1].datasetname, datasets[1].master, datasets[1].attributes) == (
        "minbias.HITS.h2",
        0,
        "repeat,ratio=4",
    )
    assert [dataset.provenance for dataset in datasets[2:]] == [0, 0]


@pytest.mark.parametrize("word", ["nosplit", "repeat", "nosplit, repeat", "ru"])
def test_files_of_a_master_are_used_once_whatever_its_attributes_say(word: str) -> None:
    raw = d.reconstruction(mergeOutput=False)
    items = [item for item in raw["jobParameters"] if item.get("param_type") == "input"]
    items[0]["attributes"] = f"{word},distributed"
    items[1]["attributes"] = word
    datasets = refined(raw).datasets
    assert [(dataset.master, is_tracked(dataset.attributes)) for dataset in datasets[:2]] == [(None, True), (0, False)]
    assert datasets[0].attributes == "distributed"


def test_merging_adds_datasets_for_unmerged_files() -> None:
    result = refined(d.reconstruction())
    unmerged = [(s.datasetname, s.type, s.provenance) for s in result.datasets if s.type.startswith("trn_")]
    assert unmerged == [("panda.um.data.AOD.r1", "trn_output", 2), ("panda.um.data.log.r1", "trn_log", 3)]
    assert [t.filenametemplate for t in result.templates if result.datasets[t.dataset].type.startswith("trn_")] == [
        "panda.um.AOD.r1._${SN}.root",
        "panda.um.log.r1._${SN}.log.tgz",
    ]


def test_unmerged_names_can_have_their_mark_at_the_end() -> None:
    result = refined(d.reconstruction(umNameAtEnd=True))
    assert "data.AOD.r1.panda.um" in [s.datasetname for s in result.datasets]
    assert "AOD.r1._${SN}.root.panda.um" in [t.filenametemplate for t in result.templates]


def test_unmerged_datasets_are_the_input_streams_of_merge_jobs() -> None:
    result = refined(d.reconstruction())
    assert [s.streamname for s in result.datasets if s.type.startswith("trn_")] == ["TRN_OUTPUT0", "TRN_LOG0"]
    written = [t.streamname for t in result.templates if result.datasets[t.dataset].type.startswith("trn_")]
    assert written == ["OUTPUT0", "LOG0"]


def test_merge_jobs_that_need_an_output_of_event_service_break_a_task_without_it() -> None:
    raw = d.reconstruction(mergeSpec={"jobParameters": "--in=${TRN_OUTPUT1}"})
    raw["jobParameters"] = [*raw["jobParameters"], d.template("output", "x.${SN}", "x", es_only=True)]
    with pytest.raises(CannotRefine, match=r"mergeSpec uses .*TRN_OUTPUT1"):
        refined(raw)


def test_groups_of_streams_are_a_form_of_merging() -> None:
    assert refined(d.reconstruction(mergeSpec={"jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG:LOG}"})).templates


def test_one_destination_serves_all_outputs_that_name_none() -> None:
    items = [d.template("output", "a.${SN}", "a"), d.template("output", "b.${SN}", "b", destination="OWN")]
    datasets = refined(d.smallest(jobParameters=items, destination="ALL", log=d.log())).datasets
    assert [s.destination for s in datasets if s.type in ("output", "log")] == ["ALL", "OWN", "ALL"]


def test_logs_of_merge_jobs_are_a_stream_of_their_own() -> None:
    result = refined(d.reconstruction(log_merge=d.log("data.merge.log", "mlog.${SN}")))
    assert [t.streamname for t in result.templates if t.filenametemplate.startswith("mlog")] == ["LOG_MERGE"]
    assert not any("mlog" in t.filenametemplate for t in result.templates if "panda.um" in t.filenametemplate)


def test_a_prun_task_gets_the_command_line_that_its_transform_reads() -> None:
    result = refined(d.analysis())
    assert result.job_params_template == (
        "-j \"\" --sourceURL https://cache.example:443 -r . -l ${LIB} -o \"{'hist.root': '${OUTPUT0}'}\""
        ' -i "${IN/T}" -p "run.sh%20%25IN${SEQNUMBER}" --inMap "{\'IN\': ${IN/T}, \'S\': ${S/T}}" ${IN/E}'
    )
    streams = [(s.datasetname, s.streamname, s.master) for s in result.datasets if "input" in s.type]
    assert streams == [("data.DAOD.d1/", "IN", None), ("seq_number", "SEQNUMBER", 1), ("user.mia.extra", "S", 1)]


def test_a_constant_is_changed_only_where_it_holds_a_whole_file_name() -> None:
    items = [
        d.template("output", "x.${SN}", "out", hidden=True),
        d.constant("a.x.${SN}.b 'x.${SN}' x.${SN}, x.${SN}y $JEDITASKID"),
    ]
    text = refined(d.smallest(jobParameters=items)).job_params_template
    assert text == "a.x.${SN}.b '${OUTPUT0}' ${OUTPUT0}, x.${SN}y 10000007"


def test_both_forms_of_the_serial_number_name_the_same_file() -> None:
    items = [d.template("output", "x.${SN}.root", "out", hidden=True), d.constant("x.${SN/P}.root")]
    assert refined(d.smallest(jobParameters=items)).job_params_template == "${OUTPUT0}"


def test_quotes_around_an_output_name_stay() -> None:
    items = [d.template("output", "--out='f.${SN}'", "out")]
    assert refined(d.smallest(jobParameters=items)).job_params_template == "--out='${OUTPUT0}'"


def test_hidden_and_unpadded_items_shape_the_text() -> None:
    items = [d.constant("a", padding=False), d.constant("b"), d.constant("secret", hidden=True), d.constant("c ")]
    assert refined(d.smallest(jobParameters=items)).job_params_template == "ab c "


def test_a_constant_is_text_and_a_template_is_data() -> None:
    data = {"value": "--in=${IN}", "param_type": "input", "dataset": "test.in"}
    as_text = refined(d.smallest(jobParameters=[{"type": "constant", "value": "--in=x"}]))
    as_data = refined(d.smallest(noInput=False, jobParameters=[{"type": "template", **data}]))
    assert [(one.job_params_template.strip(), "test.in" in str(one.datasets)) for one in (as_text, as_data)] == [
        ("--in=x", False),
        ("--in=${IN}", True),
    ]


@pytest.mark.parametrize("given", [True, False])
def test_what_merge_jobs_alone_write_is_nothing_to_the_others(given: bool) -> None:
    log = {**d.log("data.merge.log", "mlog.${SN}"), "mergeOnly": given}
    raw = d.reconstruction()
    result = refined({**raw, "jobParameters": [*raw["jobParameters"], log]})
    (stream,) = [t.streamname for t in result.templates if t.filenametemplate.startswith("mlog")]
    assert (stream == "LOG_MERGE", f"${{{stream}}}" in result.job_params_template) == (given, not given)


def test_event_service_constants_are_for_event_service_only() -> None:
    assert "--eventService" in refined(d.event_service()).job_params_template
    asked = ("nEsConsumers", "maxAttemptES", "maxAttemptEsJob", "notDiscardEvents", "esmergeSpec")
    plain = d.event_service(nEventsPerWorker=None, **dict.fromkeys(asked))
    assert "--eventService" not in refined(plain).job_params_template


def test_an_expanded_container_gives_one_master_a_dataset() -> None:
    raw = d.analysis()
    assert containers_of(parse(raw)) == ("data.DAOD.d1/", "user.mia.extra")
    result = refined(raw, constituents={"data.DAOD.d1/": ("c1", "c2"), "user.mia.extra": ("e1",)})
    inputs = [(s.datasetname, s.master, s.containername) for s in result.datasets if "input" in s.type]
    assert inputs == [
        ("c1", None, "data.DAOD.d1/"),
        ("c2", None, "data.DAOD.d1/"),
        ("seq_number", 1, None),
        ("e1", 1, "user.mia.extra"),
    ]
    assert result.datasets[1].datasetname == "c1"


@pytest.mark.parametrize("container", ["data.DAOD.d1/", "user.mia.extra"])
def test_an_empty_container_breaks_the_task(container: str) -> None:
    with pytest.raises(CannotRefine, match=f"{container} contains no datasets"):
        refined(d.analysis(), constituents={container: ()})


def test_one_dataset_cannot_be_two_streams() -> None:
    items = [d.template("input", "${IN}", "a"), d.template("input", "${X}", "a")]
    with pytest.raises(CannotRefine, match="already"):
        refined(d.smallest(noInput=False, jobParameters=items))


def test_the_same_stream_may_be_named_twice() -> None:
    items = [d.template("input", "${IN}", "a"), d.template("input", "again ${IN}", "a")]
    result = refined(d.smallest(noInput=False, jobParameters=items))
    assert (len(result.datasets), result.job_params_template) == (1, "${IN} again ${IN}")


def test_the_feeder_finds_the_item_of_a_stream() -> None:
    item = item_of_stream(parse(d.analysis()), "IN")
    assert item is not None and item.text("exclude")
    assert item_of_stream(parse(d.analysis()), "NONE") is None


def test_datasets_can_be_added_to_a_stream() -> None:
    items = [d.template("input", "${IN}", "a,b")]
    raw = d.smallest(noInput=False, jobParameters=items, dsForIN="b,c")
    assert [s.datasetname for s in refined(raw).datasets] == ["a", "b", "c"]


def test_a_list_of_physical_files_is_the_stream_of_the_pseudo_master() -> None:
    raw = d.smallest(pfnList=["file:///a/b"], jobParameters=[d.constant("${IN/T}")])
    assert refined(raw).datasets[0].streamname == "IN"


@pytest.mark.parametrize(
    ("given", "stored"), [("AUTO", None), ("A, auto,B", "A,B"), ("A", "A"), (None, None), ("", None)]
)
def test_a_site_that_is_left_to_the_broker_binds_no_task(given: str | None, stored: str | None) -> None:
    assert refined(d.smallest(site=given)).task["site"] == stored


def test_outputs_count_their_serial_numbers_from_the_offset() -> None:
    items = [d.template("output", "f.${SN}", "a", offset=30), d.template("output", "g.${SN}", "a")]
    result = refined(d.smallest(jobParameters=items))
    assert [(t.streamname, t.serialnr, t.dataset) for t in result.templates] == [("OUTPUT0", 31, 1), ("OUTPUT1", 1, 1)]


def test_outputs_of_a_container_go_to_a_dataset_of_the_task_in_it() -> None:
    spec = next(s for s in refined(d.analysis()).datasets if s.type == "output")
    assert (spec.datasetname, spec.containername) == ("user.mia.plots.v1_hist.10000007", "user.mia.plots.v1_hist/")


def test_a_command_line_that_needs_an_item_of_event_service_breaks_a_task_without_it() -> None:
    items = [d.constant("${OUTPUT0}"), d.template("output", "x.${SN}", "x", es_only=True)]
    with pytest.raises(CannotRefine, match="no item makes that stream"):
        refined(d.smallest(jobParameters=items))


def test_shell_variables_are_no_fault() -> None:
    assert refined(d.smallest(jobParameters=[d.constant("${HOME}")])).job_params_template == "${HOME}"


def test_a_name_that_grows_too_long_breaks_the_task() -> None:
    with pytest.raises(CannotRefine, match="more than 255"):
        refined(d.reconstruction(log=d.log("x" * 250)))


# --- parents ---


@pytest.mark.parametrize("status", ["done", "finished"])
def test_a_complete_parent_is_no_obstacle(status: str) -> None:
    assert refined(d.smallest(), parent=ParentView(5, status)).task["parent_tid"] == 5


@pytest.mark.parametrize("status", ["broken", "aborted", "failed", None])
@pytest.mark.parametrize("impatient", [True, False])
def test_a_parent_that_failed_breaks_the_task(status: str | None, impatient: bool) -> None:
    with pytest.raises(CannotRefine, match="5"):
        refined(d.smallest(noWaitParent=impatient), parent=ParentView(5, status))


@pytest.mark.parametrize("status", ["running", "exhausted", "pending"])
def test_a_task_waits_for_its_parent_unless_it_need_not(status: str) -> None:
    with pytest.raises(NotYet, match=status):
        refined(d.smallest(), parent=ParentView(5, status))
    assert refined(d.smallest(noWaitParent=True), parent=ParentView(5, status)).task["parent_tid"] == 5


# --- choosing the refiner ---


def test_the_first_rule_that_fits_chooses_the_refiner() -> None:
    def own(request: Request) -> Refined:
        raise CannotRefine(f"own refiner of {request.params.task_name}")

    rules = (Rule("lab", "managed", None, own), Rule(None, None, None, refine_generic))
    assert refiner_for("lab", "managed", "prod", rules) is own
    assert refiner_for("lab", "user", "anal", rules) is refine_generic
    with pytest.raises(CannotRefine, match="own refiner"):
        refined(d.generation(), rules=rules)


def test_a_task_that_no_refiner_takes_is_broken() -> None:
    with pytest.raises(CannotRefine, match="No refiner"):
        refiner_for("lab", "user", "anal", ())


# --- how much ---


def _reading(datasets: int, outputs: int = 1, **more: Any) -> dict[str, Any]:
    items = [d.template("input", "${IN}", ",".join(f"user.ada.in{n}" for n in range(datasets)))]
    items += [d.template("output", f"o{n}.${{SN}}", f"user.ada.out{n}", hidden=True) for n in range(outputs)]
    return d.smallest(noInput=None, nEvents=None, nEventsPerJob=None, jobParameters=items, **more)


def test_many_datasets_cost_steps_in_proportion_to_their_number() -> None:
    def steps(count: int) -> int:
        return steps_of(lambda: refined(_reading(count)))

    # From the difference, since much is done once however many there are.
    assert steps(900) - steps(500) < 1.5 * (steps(500) - steps(100))


def test_output_datasets_for_each_of_many_inputs_have_a_limit() -> None:
    with pytest.raises(CannotRefine, match="200 outputs make more than 10\u202f000 of them: divide the work"):
        refined(_reading(60, 200, groupBoundaryID=2))
    assert refined(_reading(60, 200, groupBoundaryID=1)).datasets
