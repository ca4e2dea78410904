from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.faults import Faults
from tasks_app.params.items import ITEM_KEYS
from tasks_app.params.keys import KEYS
from tasks_app.params.rules import amount
from tasks_app.params.schema import ParamErrors, describe, parse
from tasks_app.params.specs import SPEC_KEYS
from tests.tasks_app.params import dictionaries as d

Params = dict[str, Any]


def faults_of(raw: object) -> dict[str, str]:
    """Field -> rule of every fault; none when the dictionary is accepted."""
    try:
        parse(raw)
    except ParamErrors as errors:
        return {error.field: error.rule for error in errors.errors}
    return {}


NO_LINES = ("a\r\nb", "a\x1bb", "a\x85b", "a\u202eb", "a\u2066b")
LINES = {"cliParams", "loadXML", "value", "jobParameters"}
"""Command lines, and texts that are files; all else that is a text is a name or a word."""


@pytest.mark.parametrize("text", NO_LINES, ids=ascii)
def test_every_text_of_the_tables_but_command_lines_is_one_line(text: str) -> None:
    taken = {name for name in KEYS if name not in faults_of({**d.smallest(), name: text})}
    taken |= {
        name
        for name in ITEM_KEYS
        if not any(
            name in field
            for field in faults_of(
                d.smallest(noInput=False, jobParameters=[{**d.template("input", "${IN}", "a.b"), name: text}])
            )
        )
    }
    taken |= {
        key.name
        for spec, keys in SPEC_KEYS.items()
        for key in keys
        if f"{spec}.{key.name}" not in faults_of({**d.smallest(), spec: {"jobParameters": "x", key.name: text}})
    }
    assert taken <= LINES, taken - LINES


@pytest.mark.parametrize("name", ["architecture", "prestagingRuleID"])
@pytest.mark.parametrize("text", NO_LINES, ids=ascii)
def test_texts_inside_of_objects_are_one_line(name: str, text: str) -> None:
    for value, where in (({"a": [{"b": text}]}, f"{name}.a[0].b"), ({text: "b"}, name)):
        assert faults_of(d.smallest(**{name: value})).get(where) == "characters"


def test_an_architecture_in_json_has_no_line_feed_in_escapes_either() -> None:
    assert "architecture" in faults_of(d.smallest(architecture='{"sw_platform": "a\\r\\nb"}'))
    assert faults_of(d.smallest(architecture='{"sw_platform":\n "x86_64-el9-gcc13-opt"}')) == {
        "architecture": "characters"
    }


def test_command_lines_have_several_lines() -> None:
    lines = "for i in 1 2\ndo echo $i\ndone"
    assert (
        faults_of(d.smallest(cliParams=lines, jobParameters=[d.constant(lines)], multiStepExec={"preprocess": lines}))
        == {}
    )


@pytest.mark.parametrize("make", d.ALL, ids=lambda make: make.__name__)
def test_the_usual_kinds_of_task_are_accepted(make: Callable[[], Params]) -> None:
    raw = make()
    assert dict(parse(raw).raw) == raw


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nEvents": 101, "nEventsPerJob": 1}, "nEvents"),
        ({"nEvents": 10_001, "nEventsPerJob": 10**8, "minGranularity": 100}, "nEvents"),
        ({"nEvents": 100, "nEventsPerJob": 1}, None),
        ({"nFiles": 101}, "nFiles"),
        ({"noInput": False, "nEvents": None, "nEventsPerInputFile": 201, "nEventsPerJob": 2}, "nEventsPerJob"),
        ({"noInput": False, "nEvents": 100, "nEventsPerInputFile": 201, "nEventsPerJob": 1}, None),
        (
            {
                "noInput": False,
                "nEvents": None,
                "nEventsPerInputFile": 201,
                "nEventsPerJob": 1,
                "useRealNumEvents": True,
            },
            None,
        ),
        ({"noInput": False, "nFiles": 101}, None),
    ],
    ids=str,
)
def test_work_is_cut_into_no_more_pieces_than_a_task_may_have(changes: Params, field: str | None) -> None:
    raw = d.smallest(jobParameters=[*d.smallest()["jobParameters"], d.template("input", "${IN}", "a.b")], **changes)
    faults = Faults()
    amount(parse(raw), 100, faults)
    assert [fault.field for fault in faults] == ([field] if field else [])


@pytest.mark.parametrize(
    ("name", "is_taken"), [("a.1", True), ("mc:a.1", True), ("../../etc/passwd", False), ("mc:.a", False)]
)
@pytest.mark.parametrize("form", [str, lambda name: {"lfn": name}], ids=["name", "object"])
def test_files_are_named_as_files_can_be_called(name: str, is_taken: bool, form: Callable[[str], object]) -> None:
    item = d.template("input", "${IN}", "a.b", files=[form(name)])
    assert (faults_of(d.smallest(noInput=False, jobParameters=[item])) == {}) is is_taken


def test_items_are_read_in_order_with_their_streams() -> None:
    params = parse(d.reconstruction())
    assert [item.stream for item in params.items] == ["IN", "MB", "SN"]
    assert params.items[2].file_name == "AOD.r1._${SN}.root"
    assert params.logs[0].file_name == "log.r1._${SN}.log.tgz"


def test_what_a_client_leaves_out_has_a_default() -> None:
    params = parse(d.smallest())
    assert (params.task_type, params.vo, params.user_name, params.logs) == ("anal", None, None, ())


def test_names_come_from_a_list_a_comma_text_or_null() -> None:
    assert parse(d.smallest(includedSite=["A", "B"])).names("includedSite") == ("A", "B")
    assert parse(d.smallest(includedSite="A, B")).names("includedSite") == ("A", "B")
    assert parse(d.smallest(includedSite=None)).names("includedSite") == ()


def test_datasets_can_be_added_to_any_stream() -> None:
    params = parse(d.smallest(dsForIN="a.b/,c.d", dsForIN_2="e"))
    assert dict(params.datasets_for) == {"IN": ("a.b/", "c.d"), "IN_2": ("e",)}


def test_asking_for_a_key_as_the_wrong_kind_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        parse(d.smallest()).whole("taskName")


@pytest.mark.parametrize(
    ("changes", "field", "rule"),
    [
        ({"nFilesPerJb": 3}, "nFilesPerJb", "known key"),
        ({"taskName": None}, "taskName", "not null"),
        ({"taskName": " "}, "taskName", "not empty"),
        ({"taskName": "x" * 133}, "taskName", "length"),
        ({"workingGroup": "g" * 33}, "workingGroup", "length"),
        ({"userName": "u" * 129}, "userName", "length"),
        ({"vo": "v" * 17}, "vo", "length"),
        ({"architecture": "a" * 257}, "architecture", "length"),
        ({"architecture": 5}, "architecture", "type"),
        ({"architecture": """'{"gpu_spec": {"vendor": "nvidia"}}'"""}, "architecture", "form"),
        ({"architecture": "#&nvidia:vram>=lots"}, "architecture", "form"),
        ({"architecture": {"cpu_specs": "x86_64"}}, "architecture", "form"),
        ({"architecture": "x86_64-(el9"}, "architecture", "form"),
        ({"cliParams": "c" * 200_001}, "cliParams", "length"),
        ({"coreCount": "8"}, "coreCount", "type"),
        ({"coreCount": True}, "coreCount", "type"),
        ({"coreCount": 1.5}, "coreCount", "type"),
        ({"ramCount": -1}, "ramCount", "at least"),
        ({"nFilesPerJob": 0}, "nFilesPerJob", "at least"),
        ({"nFilesPerJob": 1001}, "nFilesPerJob", "at most"),
        ({"outDiskCount": 10**9}, "outDiskCount", "at most"),
        ({"nEvents": 2**70}, "nEvents", "range"),
        ({"cpuTime": float("nan")}, "cpuTime", "finite"),
        ({"goal": float("inf")}, "goal", "finite"),
        ({"goal": 1e308}, "goal", "range"),
        *(({"panda_data_carousel": bad}, "panda_data_carousel", "type") for bad in ([], 1.5, "c" * 300_000, {"a": 1})),
        ({"log": []}, "log", "not empty"),
        ({"log_merge": []}, "log_merge", "not empty"),
        ({"jobParameters": []}, "jobParameters", "not empty"),
        ({"goal": 100.5}, "goal", "at most"),
        ({"maxFailure": 0}, "maxFailure", "at least"),
        ({"ramUnit": "GB"}, "ramUnit", "one of"),
        ({"ramUnit": "MB", "ramCountUnit": "MBPerCore"}, "ramCountUnit", "contradiction"),
        *(
            (
                {"jobParameters": [d.template("input", "${IN}", "a", attributes=wrong)]},
                "jobParameters[0].attributes",
                "known",
            )
            for wrong in ("nosplt", "repeat,ratio", "nosplit=1", "ratio=two")
        ),
        (
            {"jobParameters": [d.template("input", "${IN}", "a", attributes="cvmfs")]},
            "jobParameters[0].attributes",
            "contradiction",
        ),
        ({"buildSpec": {"jobParameters": "x", "prodSourceLabel": "managed"}}, "buildSpec.prodSourceLabel", "known"),
        ({"preproSpec": {"jobParameters": "x", "prodSourceLabel": "tests"}}, "preproSpec.prodSourceLabel", "known"),
        ({"allowInputLAN": "yes"}, "allowInputLAN", "one of"),
        ({"mergeOutput": "yes"}, "mergeOutput", "type"),
        ({"respectLB": 2}, "respectLB", "type"),
        ({"includedSite": [1.5]}, "includedSite[0]", "type"),
        ({"includedSite": ["A"], "excludedSite": "B,A"}, "excludedSite", "contradiction"),
        ({"site": "A", "excludedSite": ["A"]}, "excludedSite", "contradiction"),
        ({"addNthFieldToLFN": "0"}, "addNthFieldToLFN", "pattern"),
        ({"dsForIN": "../secret"}, "dsForIN", "pattern"),
        ({"retryRamOffset": 4000, "retryRamMax": 3000}, "retryRamMax", "at least"),
        ({"segmentedWork": True}, "segmentSpecs", "required"),
        ({"mergeOutput": True, "log": d.log()}, "mergeSpec", "required"),
        ({"mergeOutput": True, "mergeSpec": {"jobParameters": "x"}}, "log", "required"),
        ({"mergeSpec": {"jobParams": "x", "jobParameters": "x"}}, "mergeSpec.jobParams", "known key"),
        ({"buildSpec": {}}, "buildSpec.jobParameters", "required"),
        ({"nEvents": None}, "noInput", "amount of work"),
        ({"noInput": False}, "jobParameters", "some input"),
        ({"jobParameters": "echo"}, "jobParameters", "type"),
        ({"log": [d.constant("x")]}, "log[0].param_type", "one of"),
        ({"cliParams": "a\x00b"}, "cliParams", "characters"),
        ({"sourceURL": "http://[x"}, "sourceURL", "pattern"),
        ({"sourceURL": "http://a\u2100b"}, "sourceURL", "pattern"),
        ({"sourceURL": "gopher://server.example"}, "sourceURL", "pattern"),
        ({"sourceURL": "server.example"}, "sourceURL", "pattern"),
        ({"cliParams": "a\ud800b"}, "cliParams", "characters"),
    ],
)
def test_each_rule_names_its_field(changes: Params, field: str, rule: str) -> None:
    assert faults_of(d.smallest(**changes))[field] == rule


@pytest.mark.parametrize(
    ("item", "field", "rule"),
    [
        ("echo", "", "type"),
        ({"value": "x"}, ".type", "required"),
        ({"type": "constant"}, ".value", "required"),
        ({"type": "macro", "value": "x"}, ".type", "one of"),
        ({"type": "template", "value": "${IN}", "dataset": "a"}, ".param_type", "required"),
        (d.template("inputs", "${IN}", "a"), ".param_type", "one of"),
        (d.template("input", "--in=x", "a"), ".value", "placeholder"),
        (d.template("input", "${IN}"), ".dataset", "required"),
        (d.template("input", "${IN}", "a b"), ".dataset", "pattern"),
        (d.template("input", "${IN}", "a" * 256), ".dataset", "length"),
        (d.template("input", "${" + "X" * 21 + "}", "a"), ".value", "length"),
        (d.template("input", "${IN}", "a", ratio=0), ".ratio", "at least"),
        (d.template("input", "${IN}", "a", exclude="(unclosed"), ".exclude", "regular expression"),
        (d.template("input", "${IN}", "a", include="a, (?=b)c"), ".include", "regular expression"),
        (d.template("input", "${IN}", "a", files=[{"name": "x"}]), ".files[0]", "file name"),
        (d.template("input", "${IN}", "a", dataSet="b"), ".dataSet", "known key"),
        (d.template("number", "--seed=5"), ".value", "placeholder"),
        (d.template("output", "--out=f.${SN}"), ".dataset", "required"),
        (d.template("output", "--out=f.${SN}", "a,b"), ".dataset", "one"),
        (d.template("output", "--out=f.root", "a"), ".value", "serial number"),
        (d.template("output", "--out=f/${SN}.root", "a"), ".value", "file name"),
        (d.template("output", "--out=f.${SN}.root --more", "a"), ".value", "file name"),
        (d.template("output", "--out=f,${SN}.root", "a"), ".value", "file name"),
        (d.constant("-l ${LIB}"), ".value", "build"),
    ],
)
def test_each_rule_of_items_names_its_field(item: object, field: str, rule: str) -> None:
    raw = d.smallest(jobParameters=[d.constant("first"), item])
    assert faults_of(raw)[f"jobParameters[1]{field}"] == rule


def test_all_faults_are_found_at_once() -> None:
    raw = d.smallest(coreCount="8", ramUnit="GB", nonsense=1, log={"type": "constant"})
    del raw["taskName"]
    assert set(faults_of(raw)) == {"taskName", "coreCount", "ramUnit", "nonsense", "log.value"}


def test_messages_are_sentences_with_the_numbers() -> None:
    with pytest.raises(ParamErrors) as caught:
        parse(d.smallest(taskName="x" * 140))
    assert caught.value.errors[0].message == "At most 132 characters are allowed, not 140."


def test_an_unknown_key_gets_the_nearest_name_as_a_hint() -> None:
    with pytest.raises(ParamErrors, match=r"Did you mean nFilesPerJob\?"):
        parse(d.smallest(nFilePerJob=3))


def test_one_job_may_have_an_output_without_serial_number() -> None:
    one = d.template("output", "--out=result.root", "a")
    assert faults_of(d.smallest(nEvents=1, jobParameters=[one])) == {}
    assert faults_of(d.smallest(nEvents=2, jobParameters=[one])) == {"jobParameters[0].value": "serial number"}


@pytest.mark.parametrize(
    ("files", "per_job", "one_job"), [(1, None, True), (5, 5, True), (6, 5, False), (2, None, False)]
)
def test_the_number_of_files_tells_whether_there_is_one_job(files: int, per_job: int | None, one_job: bool) -> None:
    items = [d.template("input", "${IN}", "a"), d.template("output", "--out=result.root", "b")]
    raw = d.smallest(noInput=False, jobParameters=items, nFiles=files, nFilesPerJob=per_job)
    assert (faults_of(raw) == {}) is one_job


def test_two_outputs_of_a_job_cannot_share_a_file_name() -> None:
    items = [d.template("output", "f.${SN}", "a"), d.template("output", "--o='f.${SN}'", "b")]
    assert faults_of(d.smallest(jobParameters=items)) == {"jobParameters[1].value": "unique"}


def test_a_dataset_cannot_be_read_and_written_by_one_task() -> None:
    items = [d.template("input", "${IN}", "a"), d.template("output", "f.${SN}", "a")]
    assert faults_of(d.smallest(jobParameters=items)) == {"jobParameters[1].dataset": "input or output"}


def test_a_flag_that_says_false_is_off() -> None:
    assert not parse(d.smallest(skipScout=False)).flag("skipScout")
    assert parse(d.smallest(useLocalIO=1)).flag("useLocalIO")


def test_deep_nesting_is_refused_without_exhausting_the_stack() -> None:
    deep: Any = "x"
    for _ in range(50_000):
        deep = [deep]
    assert "depth" in faults_of(d.smallest(multiStepExec={"a": deep})).values()
    while isinstance(deep, list):
        deep = deep.pop()


def test_a_dictionary_of_any_size_is_refused_soon() -> None:
    assert faults_of(d.smallest(pfnList=["x" * 1000] * 10_000)) == {"": "size"}


def test_every_key_is_described_once_and_with_a_meaning() -> None:
    rows = describe()
    assert len({(row.inside, row.name) for row in rows}) == len(rows)
    assert {row.name for row in rows if not row.inside} == {*KEYS, "dsFor<STREAM>"}
    assert all(row.meaning and row.type for row in rows)


def test_every_text_has_an_upper_bound() -> None:
    unbounded = [key.name for key in KEYS.values() if key.kind in ("text", "names") and key.longest is None]
    assert unbounded == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
known_names = st.sampled_from([*KEYS, "dsForIN", "nFilePerJob"])
item_names = ["type", "value", "param_type", "dataset", "files", "exclude", "ratio", "offset", "hidden"]
items = st.lists(
    st.dictionaries(
        st.sampled_from(item_names),
        json_values | st.sampled_from(["template", "constant", "input", "output", "${IN}", "f.${SN}", "("]),
        max_size=6,
    ),
    max_size=4,
)


@given(raw=json_values)
def test_any_json_is_accepted_or_refused_with_param_errors(raw: object) -> None:
    try:
        parse(raw)
    except ParamErrors as errors:
        assert errors.errors


@given(changes=st.dictionaries(known_names, json_values, max_size=6), parts=items)
def test_known_keys_with_any_values_are_accepted_or_refused_with_param_errors(changes: Params, parts: object) -> None:
    try:
        params = parse({**d.smallest(jobParameters=parts), **changes})
    except ParamErrors as errors:
        assert errors.errors and all(error.message for error in errors.errors)
    else:
        assert params.task_name


@given(name=st.sampled_from(sorted(KEYS)), value=json_values)
def test_a_fault_of_one_key_never_hides_a_fault_of_another(name: str, value: object) -> None:
    if name not in ("taskName", "coreCount") and name in faults_of(d.smallest(**{name: value})):
        found = faults_of(d.smallest(**{name: value, "coreCount": "many"}))
        # A value that cannot be stored ends the check early, so nothing else is said then.
        assert "coreCount" in found or found[name] in ("characters", "finite", "range", "depth", "key")


def test_work_is_cut_into_as_many_pieces_as_the_books_hold() -> None:
    name = d.template("output", "--o=x.${SN}", "d.o")
    assert faults_of(d.smallest(nEvents=10**9, nEventsPerJob=200, jobParameters=[name])) == {}
    assert faults_of(d.smallest(nEvents=10**12, nEventsPerJob=None)) == {}


@pytest.mark.parametrize("dataset", ["user.ada/../x", "..", "user.ada..x", "a/.."])
def test_no_name_of_a_dataset_leads_upwards(dataset: str) -> None:
    items = [d.template("input", "${IN}", dataset)]
    assert faults_of(d.smallest(noInput=False, jobParameters=items)) == {"jobParameters[0].dataset": "pattern"}
    assert faults_of(d.smallest(dsForIN=dataset)) == {"dsForIN": "pattern"}


def test_what_is_far_too_much_is_refused_by_its_number() -> None:
    """Each entry is one that every check would refuse; none of them is looked at."""
    with pytest.raises(ParamErrors) as caught:
        parse(d.smallest(**{f"k{n}": object() for n in range(200_000)}))
    assert [(e.field, e.rule) for e in caught.value.errors] == [("", "length")]
    for name in ("jobParameters", "log", "log_merge"):
        with pytest.raises(ParamErrors) as caught:
            parse(d.smallest(**{name: [object()] * 100_000}))
        assert [(e.field, e.rule) for e in caught.value.errors] == [(name, "length")]


def test_one_file_that_is_cut_into_ranges_makes_several_jobs() -> None:
    items = [d.template("input", "${IN}", "a.b"), d.template("output", "x.root", "d.o")]
    one = d.smallest(noInput=False, nEvents=None, nFiles=1, nEventsPerJob=10, jobParameters=items)
    assert faults_of(one) == {} == faults_of({**one, "nEventsPerInputFile": 10})
    for more in ({"nEventsPerInputFile": 11}, {"useRealNumEvents": True}):
        assert faults_of({**one, **more}) == {"jobParameters[1].value": "serial number"}


@pytest.mark.parametrize("name", ["user.ada.my task", "user.ada.a,b", ".a", "a..b", "a(1)", "tâche"])
def test_the_name_of_a_task_is_one_from_which_names_of_datasets_can_be_made(name: str) -> None:
    assert faults_of(d.smallest(taskName=name)) == {"taskName": "pattern"}


@pytest.mark.parametrize(
    "changes",
    [
        {"taskName": "a b"},
        {"dsForIN": "a b"},
        {"transferType": "a b"},
        {"addNthFieldToLFN": "0"},
        {"skipFilesUsedBy": "x"},
        {"jobParameters": [d.template("input", "${IN}", "a b")]},
        {"jobParameters": [d.template("input", "${IN}", "a", container="a b")]},
        {"jobParameters": [d.template("input", "${IN}", "a", attributes="a;b")]},
    ],
)
def test_what_a_text_may_hold_is_said_in_words_and_not_as_a_regular_expression(changes: Params) -> None:
    with pytest.raises(ParamErrors) as refused:
        parse(d.smallest(**changes))
    (error,) = refused.value.errors
    assert error.rule == "pattern" and not set("[]()?*\\") & set(error.message.partition(": ")[2])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"nFilesPerJb": 3}, "'nFilesPerJb' is not a task parameter. Did you mean nFilesPerJob?"),
        ({"jobParameters": [d.constant("x", filelist=[])]}, "'filelist' is not a key of an item. Did you mean files?"),
        (
            {"jobParameters": [d.constant("x", qqq=1)]},
            "'qqq' is not a key of an item; those are allowNoOutput, attributes, ",
        ),
        ({"buildSpec": {"jobParameters": "x", "jobParams": "y"}}, "Did you mean jobParameters?"),
        ({"buildSpec": {"jobParameters": "x", "zz": "y"}}, "those are archiveName, jobParameters, "),
    ],
)
def test_an_unknown_key_is_answered_with_the_one_that_was_meant_or_all(changes: Params, says: str) -> None:
    with pytest.raises(ParamErrors) as refused:
        parse(d.smallest(**changes))
    assert says in refused.value.errors[0].message


@pytest.mark.parametrize("name", ["%s.${SN}", "-", "-rf.${SN}", ".x${SN}", "~a.${SN}"])
def test_an_output_that_begins_with_what_may_stand_further_on_is_told_so(name: str) -> None:
    with pytest.raises(ParamErrors) as refused:
        parse(d.smallest(jobParameters=[d.template("output", f"--out={name}", "a")]))
    said = next(e.message for e in refused.value.errors if e.rule == "file name")
    assert said == f"{name!r} must not begin with {name[0]!r}: a file name begins with a letter, a digit or _."


@pytest.mark.parametrize("name", ["a,b${SN}", "-a/b.${SN}", "é.${SN}"])
def test_an_output_with_a_character_that_is_not_allowed_is_told_which_are(name: str) -> None:
    with pytest.raises(ParamErrors) as refused:
        parse(d.smallest(jobParameters=[d.template("output", f"--out={name}", "a")]))
    assert any("is not a file name: use only letters, digits and" in e.message for e in refused.value.errors)


def test_an_output_that_no_disk_can_hold_by_its_name_is_refused_with_its_length() -> None:
    for numbers, room in ((".${SN}", 248), (".$JEDITASKID.${SN}", 239), (".${SN:020d}", 234), (".$PANDAID", 244)):
        parse(d.smallest(jobParameters=[d.template("output", "a" * room + numbers, "a")]))
        with pytest.raises(ParamErrors) as refused:
            parse(d.smallest(jobParameters=[d.template("output", "a" * (room + 1) + numbers, "a")]))
        (said,) = [e.message for e in refused.value.errors]
        assert said == "A file name has at most 255 characters, and with its numbers this has 256.", numbers


@pytest.mark.parametrize("value", ["", "--out=", None])
def test_an_output_without_a_name_is_told_that_it_needs_one(value: str | None) -> None:
    item = d.template("output", value or "", "a")
    if value is None:
        del item["value"]
    with pytest.raises(ParamErrors) as refused:
        parse(d.smallest(jobParameters=[item]))
    (said,) = [e.message for e in refused.value.errors if e.field.endswith(".value")]
    assert said.startswith("A template of type output needs a file name here, such as out.${SN}.txt;")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"noInput": "yes"}, "Expected true or false (or 1 and 0), or null, got text 'yes'."),
        ({"taskName": 5}, "Expected text, got number 5."),
        ({"nFilesPerJob": "many"}, "Expected a whole number, or null, got text 'many'."),
        ({"buildSpec": [1]}, "Expected an object, or null, got list [1]."),
        ({"jobParameters": "x"}, "Expected a list of objects, got text 'x'."),
        ({"jobParameters": None}, "null is not allowed here; leave the key out or give a list of objects."),
    ],
)
def test_a_value_of_a_wrong_kind_is_told_the_right_one_in_a_sentence(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ParamErrors) as refused:
        parse({**d.smallest(), **changes})
    assert said in [e.message for e in refused.value.errors]


def test_a_dictionary_of_unknown_keys_is_refused_quickly() -> None:
    unknown = {f"k{n}" * 20: 1 for n in range(300)}
    with pytest.raises(ParamErrors) as refused:
        parse(d.smallest(jobParameters=[d.constant("x", **unknown) for _ in range(1000)]))
    assert sum(not e.message.endswith("item.") for e in refused.value.errors) <= 21


OUT = d.template("output", "o.${SN}", "o")


def test_a_task_of_more_templates_than_the_refiner_looks_at_in_a_turn_is_refused() -> None:
    outputs = [d.template("output", f"o{n}.${{SN}}", f"o{n}") for n in range(251)]
    parse(d.smallest(jobParameters=[d.constant("x"), *outputs[:250]]))
    with pytest.raises(ParamErrors) as refused:
        parse(d.smallest(jobParameters=outputs))
    assert str(refused.value) == (
        "jobParameters: A task has at most 250 templates of inputs and outputs, not 251. "
        "Divide the work among several tasks."
    )


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"jobParameters": [d.constant("x > ${OUTPUT1}"), OUT]}, "jobParameters[0].value", "${OUTPUT1}"),
        ({"jobParameters": [d.constant("x > ${OUTPUT0}")]}, "jobParameters[0].value", "there are no streams"),
        ({"jobParameters": [d.constant("cat ${IN}"), OUT]}, "jobParameters[0].value", "the streams are OUTPUT0."),
        ({"jobParameters": [d.constant("cat ${IN_2/T}")]}, "jobParameters[0].value", "${IN_2}"),
        (
            {"jobParameters": [d.constant("x ${LOG1}")], "log": d.log()},
            "jobParameters[0].value",
            "the streams are LOG0.",
        ),
        ({"jobParameters": [d.constant("x ${SEQNUMBER}")]}, "jobParameters[0].value", "${SEQNUMBER}"),
        ({"jobParameters": [d.constant("x ${SURL}")]}, "jobParameters[0].value", "sourceURL"),
        ({"jobParameters": [d.constant("x ${SEGMENT_ID}")]}, "jobParameters[0].value", "${SEGMENT_ID}"),
        (
            {"jobParameters": [d.template("output", "-o ${OUTPUT7} --out=o.${SN}", "o")]},
            "jobParameters[0].value",
            "${OUTPUT7}",
        ),
        ({"buildSpec": {"jobParameters": "-o ${OUTPUT0}"}}, "buildSpec.jobParameters", "the streams are IN, OUT."),
        ({"buildSpec": {"jobParameters": "-o ${OUT} ${SN}"}}, "buildSpec.jobParameters", "${SN}"),
        (
            {"mergeOutput": True, "log": d.log(), "mergeSpec": {"jobParameters": "${TRN_OUTPUT0}"}},
            "mergeSpec.jobParameters",
            "the streams are LOG0, LOG_MERGE, TRN_LOG0.",
        ),
    ],
)
def test_a_placeholder_that_nothing_fills_is_refused_with_the_streams(changes: Params, field: str, says: str) -> None:
    with pytest.raises(ParamErrors) as refused:
        parse(d.smallest(**changes))
    (error,) = refused.value.errors
    assert (error.field, error.rule) == (field, "placeholder") and says in error.message


@pytest.mark.parametrize(
    "changes",
    [
        {"jobParameters": [d.constant("${OUTPUT0} ${LOG0} ${HOME} ${IN2} $PANDAID"), OUT], "log": d.log()},
        {
            "jobParameters": [
                d.constant("${IN} ${IN_2}"),
                d.template("input", "${IN}", "a"),
                d.template("input", "${IN_2}", "b"),
            ],
            "noInput": False,
        },
        {"jobParameters": [d.constant("x"), d.template("input", "${IN}", "a", hidden=True)], "noInput": False},
        {"jobParameters": [d.constant("x ${SURL} ${SN} ${RNDMSEED}")], "sourceURL": "https://site.example"},
        {"buildSpec": {"jobParameters": "-i ${IN} -o ${OUT}"}, "jobParameters": [d.constant("-l ${LIB}")]},
        {
            "mergeOutput": True,
            "log": d.log(),
            "mergeSpec": {"jobParameters": "${TRN_LOG0} ${LOG_MERGE} ${TRN_LOG:LOG}"},
        },
    ],
)
def test_placeholders_of_streams_that_there_are_and_of_the_shell_are_accepted(changes: Params) -> None:
    assert faults_of(d.smallest(**changes)) == {}


def test_the_refusal_of_a_merge_without_its_step_shows_a_step_that_is_taken() -> None:
    with pytest.raises(ParamErrors) as refused:
        parse(d.smallest(mergeOutput=True, log=d.log()))
    said = str(refused.value)
    example = json.loads(said[said.index("{") : said.rindex("}") + 1])
    assert example == {"transPath": "merge_command", "jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG:LOG}"}
    assert parse(d.smallest(mergeOutput=True, log=d.log(), mergeSpec=example)).flag("mergeOutput")
