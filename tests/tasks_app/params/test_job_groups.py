"""The XML of groups of files, and which tasks may have groups: what is read, and what is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.combinations import remarks
from tasks_app.params.faults import ParamErrors
from tasks_app.params.job_groups import BadGroups, read_groups
from tasks_app.params.schema import parse
from tasks_app.params.to_splitrule import from_params
from tests.tasks_app.params import dictionaries as d

FILES = "<inds><name>user:lab.a/</name><file>f1</file><file>lab:f2</file></inds>"
JOB = f"<job>{FILES}<output>x.root</output></job>"


def xml(inside: str, head: str = "<command>run</command>") -> str:
    return f"<submission>{head}{inside}</submission>"


def task(text: str = xml(JOB), **changes: Any) -> dict[str, Any]:
    raw = {
        "taskName": "user.ada.t",
        "prodSourceLabel": "user",
        "transPath": "run_command",
        "loadXML": text,
        "log": d.log(),
        "jobParameters": [
            d.template("input", "-i ${IN/T}", "lab.a"),
            d.constant('-o "${XML_OUTMAP}" -p "${XML_EXESTR}"'),
            d.template("output", "out.${SN}", "user.ada.out", hidden=True),
        ],
        **changes,
    }
    return {key: value for key, value in raw.items() if value is not None}


def faults(raw: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ParamErrors) as caught:
        parse(raw)
    return {error.field: error.message for error in caught.value.errors}


def test_a_group_has_files_a_command_options_and_outputs() -> None:
    options = "<option name='n' forward='yes'>1 2</option><option name='s' prepend='1' forward='0'>a</option>"
    found = read_groups(xml(f"<job><command>own &lt;x&gt;</command>{options}{FILES}<output>y</output></job>" + JOB))
    first, second = found.groups
    assert (dict(first.files), first.command, first.outputs) == ({"lab.a": ("f1", "f2")}, "own <x>", ("y",))
    assert (first.exec_text, first.endings) == ("n%3D1%202%20own%20%3Cx%3E", [".sa.y"])
    assert (second.command, second.endings) == ("run", [".x.root"])
    assert found.of_dataset("scope:lab.a") == {"f1": [0, 1], "f2": [0, 1]}


@pytest.mark.parametrize(("mode", "rule"), [(None, "LX=3,GB=4"), (1, "LX=3,GB=1"), (3, "LX=3,GB=3")])
def test_groups_become_codes_and_there_are_no_scouts(mode: int | None, rule: str) -> None:
    assert str(from_params(parse(task(groupBoundaryID=mode)))) == rule


LAUGHS = "<!DOCTYPE a [<!ENTITY b 'ha'><!ENTITY c '&b;&b;&b;'>]>" + xml("&c;")
OUTSIDE = "<!DOCTYPE a SYSTEM 'file:///etc/passwd'>" + xml(JOB)


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        (LAUGHS, "", "document type"),
        (OUTSIDE, "", "document type"),
        ("<submission>", "", "not well-formed"),
        ("<?xml-stylesheet href='a.xsl'?>" + xml(JOB), "", "has no effect here"),
        ("<?xml version='1.0' encoding='latin-9'?><submission/>", "", "no <job>"),
        ("<jobs/>", "", "not <jobs>"),
        (xml(""), "", "no <job>"),
        (xml("<a>" * 10 + "</a>" * 10), "", "deep"),
        (xml("<a/>" * 60_001), "", "elements"),
        (xml("&nothing;"), "", "not well-formed"),
        (xml(JOB + "<job><inds><file>x</file></inds></job>"), "job[1].inds[0].name", "needs the <name>"),
        (xml("<job><inds><name>a</name><file>../x</file></inds></job>"), "job[0].inds[0].file[0]", "name of a file"),
        (xml("<job><inds><name>a</name><file>x</file><file>x</file></inds></job>"), "job[0].inds[0]", "twice"),
        (xml(f"<job><inds><name>a</name>{'<file>x</file>' * 0}<file/></inds></job>"), "job[0].inds[0].file[0]", "256"),
        (
            xml("<job><inds><name>a</name>" + "".join(f"<file>x{n}</file>" for n in range(1001)) + "</inds></job>"),
            "job[0]",
            "1001 files",
        ),
        (xml("<job><output>../x</output></job>"), "job[0].output[0]", "file name"),
        (xml("<job><output>x</output></job><job><output>x</output></job>"), "job[1].output", "job[0]"),
        (xml("<job><option name='a b' forward='1'>x</option></job>"), "job[0].option[0]", "name of letters"),
        (xml("<job><option name='a'>x</option></job>"), "job[0].option[0]", "no effect"),
        (xml("<job><option name='a' prepend='1'>../x</option></job>"), "job[0].option[0]", "begins the names"),
        (xml(JOB, "<inds primary='true'><name>b</name></inds>"), "job[0]", "primary"),
        (xml(JOB, "<inds primary='1' manytime='1'><name>b</name></inds>"), "inds[0]", "neither"),
        (
            xml(f"<job>{FILES}</job><job>{FILES}</job>", "<inds onetime='1'><name>lab.a</name></inds>"),
            "job[1].inds",
            "read once",
        ),
        (xml("<job/>" * 10_001), "job[10000]", "10000 groups"),
        (xml(f"<job><inds><name>a</name>{'<file>x</file>' * 1001}</inds></job>"), "job[0]", "1001 files"),
        (xml(JOB, "<inds onetime='1'><name>lab.a</name></inds>" * 1001), "inds[1000]", "1000 datasets"),
        (xml("<job/>" * 1001, "".join(f"<output>o{n}</output>" for n in range(100))), "job[1000]", "more outputs than"),
        (
            xml("<job>" + "<option name='nine_long' prepend='1'>four</option>" * 20 + "</job>"),
            "job[0]",
            "279 characters",
        ),
    ],
    ids=range(28),
)
def test_what_is_refused_is_named_by_its_place(text: str, where: str, said: str) -> None:
    with pytest.raises(BadGroups, match=said.replace("[", r"\[")) as caught:
        read_groups(text)
    assert caught.value.where == where
    field = f"loadXML.{where}" if where else "loadXML"
    assert said in faults(task(text))[field]


@given(st.text(max_size=200) | st.text("<>/&;!?[]=' submisonjb", max_size=200).map(xml))
def test_no_text_does_harm(text: str) -> None:
    try:
        read_groups(text)
    except BadGroups as error:
        assert str(error).endswith((".", "?"))


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"nFilesPerJob": 2}, "nFilesPerJob", "whatever its size"),
        ({"nGBPerJob": 2}, "nGBPerJob", "whatever its size"),
        ({"nFiles": 2}, "nFiles", "all files of a group"),
        ({"mergeOutput": True, "mergeSpec": {"jobParameters": "x"}}, "mergeOutput", "never merged"),
        ({"groupBoundaryID": 5}, "groupBoundaryID", "4"),
        ({"text": xml(f"<job>{FILES.replace('lab.a', 'lab.b')}</job>")}, "loadXML.job[0].inds", "No item"),
        ({"text": xml(JOB + "<job/>")}, "loadXML.job[1].inds", "no file of lab.a"),
        ({"text": xml(JOB, "")}, "loadXML.job[0].command", "no command"),
        (
            {"text": xml(JOB, "<command>x</command><inds primary='true'><name>lab.a</name></inds><output>y</output>")},
            "",
            "",
        ),
    ],
)
def test_what_does_not_go_with_groups_is_refused(changes: dict[str, Any], field: str, said: str) -> None:
    raw = task(**{"loadXML" if key == "text" else key: value for key, value in changes.items()})
    if not field:
        assert parse(raw)
        return
    assert said in faults(raw)[field]


def test_secondary_files_cannot_be_shared_out_inside_a_group() -> None:
    text = xml(f"<job>{FILES}<inds><name>lab.b</name><file>g</file></inds><output>x</output></job>")
    items = [*task()["jobParameters"], d.template("input", "${IN2}", "lab.b")]
    parse(task(text, jobParameters=items))
    assert "manytime" in faults(task(text, jobParameters=items, groupBoundaryID=1))["jobParameters[3].dataset"]
    many = text.replace("<command>", "<inds manytime='true'><name>lab.b</name></inds><command>")
    parse(task(many, jobParameters=items, groupBoundaryID=1))


def test_groups_of_listed_files_need_groupboundaryid_and_a_number_each() -> None:
    def raw(*files: Any, **more: Any) -> dict[str, Any]:
        items = [
            d.template("input", "${IN}", "lab.a", files=list(files)),
            d.template("output", "o.${SN}", "user.ada.out"),
        ]
        return task(None or "", jobParameters=items, **more) | {"loadXML": None}

    one = {"lfn": "a", "boundaryID": 1}
    assert "has no effect" in faults(raw(one))["jobParameters[0].files"]
    assert "other files" in faults(raw(one, "b", groupBoundaryID=3))["jobParameters[0].files[1]"]
    assert (
        "0 to"
        in faults(raw({"lfn": "a", "boundaryID": "x"}, groupBoundaryID=3))["jobParameters[0].files[0].boundaryID"]
    )
    parse(raw(one, {"lfn": "b", "boundaryID": 2}, groupBoundaryID=3))
    many = [{"lfn": f"a{n}", "boundaryID": 1} for n in range(1001)]
    assert "1001 files" in faults(raw(*many, groupBoundaryID=3))["jobParameters[0].files"]
    parse(raw(*many, groupBoundaryID=1))


def test_luminosity_blocks_are_released_in_no_other_bunches() -> None:
    items = [d.template("input", "${IN}", "lab.a"), d.template("output", "o.${SN}", "user.ada.out")]
    raw = task(loadXML=None, jobParameters=items, releasePerLB=True)
    parse(raw)
    assert "whole luminosity blocks" in faults({**raw, "nChunksToWait": 3})["nChunksToWait"]


def test_groups_that_are_released_one_by_one_name_their_files_of_one_dataset() -> None:
    parse(task(releasePerGroup=True))
    out = d.template("output", "o.${SN}", "user.ada.out")
    items = [d.template("input", "${IN}", "lab.a"), out]
    plain = task(loadXML=None, jobParameters=items, releasePerGroup=True)
    assert "whose files are named" in faults(plain)["releasePerGroup"]
    assert (
        "reads no files"
        in faults(task(loadXML=None, jobParameters=[out], noInput=True, nEvents=1, releasePerGroup=True))[
            "releasePerGroup"
        ]
    )
    two = [d.template("input", "${IN}", "lab.a"), d.template("input", "${IN2}", "lab.b"), *task()["jobParameters"][1:]]
    both = xml(
        "<job><inds><name>lab.a</name><file>f1</file></inds><inds><name>lab.b</name><file>f2</file></inds></job>"
    )
    assert "one dataset or container" in faults(task(both, jobParameters=two, releasePerGroup=True))["releasePerGroup"]
    assert "leave out waitInput" in faults(task(releasePerGroup=True, waitInput=True))["waitInput"]


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        (
            xml(f"<job><option name='n' forwrad='true' prepend='1'>1</option>{FILES}</job>"),
            "job[0].option[0].forwrad",
            "Did you mean forward?",
        ),
        (
            xml(f"<job><option name='n' forward='ture' prepend='1'>1</option>{FILES}</job>"),
            "job[0].option[0].forward",
            "true or false, not ture",
        ),
        (xml(JOB, "<command>run</command><outdss>x</outdss>"), "", "Did you mean outds?"),
        (xml(f"<job><comand>x</comand>{FILES}</job>"), "job[0]", "Did you mean command?"),
        (xml(JOB + "<job><inds><name>lab.a</name><files>f1</files></inds></job>"), "job[1].inds[0]", "mean file?"),
        (xml("<job primary='1'>x</job>"), "job[0].primary", "primary is not an attribute of <job>"),
    ],
)
def test_what_is_misspelt_is_told_with_its_place(text: str, where: str, said: str) -> None:
    with pytest.raises(BadGroups) as caught:
        read_groups(text)
    assert caught.value.where == where and said in str(caught.value)


INDS = "<inds primary='true'><stream>IN</stream><name>lab.a</name></inds>"


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("<outds>user.ada.out</outds>" + INDS, []),
        ("<outds>user.ada.o</outds>", []),
        ("<outds/>", []),
        (
            "<outds>user.ada.other</outds>",
            ["<outds> user.ada.other of loadXML has no effect: outputs go to user.ada.out, as jobParameters says."],
        ),
        (
            INDS.replace("<stream>IN", "<stream>SECOND"),
            ["<stream> SECOND of lab.a in loadXML has no effect: the items of jobParameters call it IN."],
        ),
        ("<title>t</title>", ["<title> of loadXML says nothing: it is for people to read."]),
        ("<title>t</title><tag>x</tag>", ["<title> and <tag> of loadXML say nothing: they are for people to read."]),
    ],
)
def test_what_prun_demands_of_the_xml_is_taken_and_told_where_the_task_says_otherwise(
    head: str, says: list[str]
) -> None:
    raw = task(xml(JOB, f"<command>run</command>{head}"))
    assert remarks(parse(raw)) == says


def test_each_element_and_attribute_counts() -> None:
    """What each alone changes in what is read of one document."""
    plain = read_groups(xml(JOB))
    for head, job in (
        ("<inds primary='1'><name>lab.a</name></inds>", JOB),
        ("<inds manytime='1'><name>lab.b</name></inds>", JOB),
        ("<inds onetime='1'><name>lab.a</name></inds>", JOB),
        ("<output>more</output>", JOB),
        ("", JOB.replace("<job>", "<job><command>other</command>")),
        ("", JOB.replace("<job>", "<job><option name='n' prepend='1'>a</option>")),
        ("", JOB.replace("<job>", "<job><option name='n' forward='1'>a</option>")),
        ("", JOB.replace("<file>f1</file>", "")),
        ("", JOB + JOB.replace("x.root", "y.root")),
    ):
        assert read_groups(xml(job, f"<command>run</command>{head}")) != plain, (head, job)


def test_a_misspelt_key_of_a_listed_file_is_told() -> None:
    items = [d.template("input", "${IN}", "lab.a", files=[{"lfn": "f1", "boundryID": 1}])]
    said = faults(task(loadXML=None, jobParameters=items))
    assert said == {
        "jobParameters[0].files[0].boundryID": "'boundryID' is not a key of a file. Did you mean boundaryID?"
    }
