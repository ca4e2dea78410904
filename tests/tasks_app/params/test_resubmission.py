from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.params.resubmission import (
    AGAIN_FROM,
    CHANGEABLE_KEYS,
    RULE_KEYS,
    Code,
    Existing,
    apply_changes,
    changed_rule,
    changes_of,
    check_changes,
    decide,
    looks_for_duplicates,
    name_key,
    too_many,
)
from tasks_app.params.schema import ParamErrors, TaskParams, parse
from tasks_app.params.split_codes import CHANGEABLE
from tasks_app.params.splitrule import SplitRule
from tests.tasks_app.params import dictionaries as d


def unique(**changes: Any) -> TaskParams:
    return parse(d.smallest(uniqueTaskName=True, **changes))


def code_of(status: str | None, label: str = "user", allow_active: bool = False, **changes: Any) -> Code:
    return decide(unique(**changes), Existing(7, status, label), allow_active=allow_active).code


# --- who is compared with whom ---


@pytest.mark.parametrize(
    ("changes", "allow_active", "wanted"),
    [
        ({"uniqueTaskName": True}, False, True),
        ({"uniqueTaskName": False}, False, False),
        ({}, False, False),
        ({}, True, True),
        ({"uniqueTaskName": True, "taskType": "prod"}, True, False),
    ],
)
def test_names_matter_for_analyses_that_ask(changes: dict[str, Any], allow_active: bool, wanted: bool) -> None:
    assert looks_for_duplicates(parse(d.smallest(**changes)), allow_active=allow_active) is wanted


def test_official_tasks_of_one_name_are_the_same_whoever_submits() -> None:
    own, official = unique(vo="lab"), unique(vo="lab", official=True)
    assert name_key(own, "mia") == ("lab", "user", "mia", "t")
    assert name_key(official, "mia") == name_key(official, "leo") == ("lab", "user", None, "t")
    assert name_key(unique(), "mia", "local").vo == "local"


def test_a_task_of_another_kind_stands_in_the_way_of_names_that_are_to_be_unique_alone() -> None:
    other = Existing(7, "done", "user", kind="anal of VO atlas, label user, done")
    refused = decide(unique(), other)
    assert (refused.code, refused.task_id) == (Code.IS_ACTIVE, 7) and "VO atlas" in refused.sentence
    assert decide(unique(taskType="prod"), other).code is Code.IS_ACTIVE
    assert decide(parse(d.smallest()), other, allow_active=True).code is Code.NEW


# --- codes ---


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (None, Code.QUEUED),
        ("registered", Code.QUEUED),
        *((status, Code.AGAIN) for status in ("finished", "failed", "aborted", "done", "exhausted")),
        *((status, Code.IS_ACTIVE) for status in ("running", "scouting", "pending", "ready", "broken", "toabort")),
    ],
)
def test_the_state_of_the_old_task_decides(status: str | None, wanted: Code) -> None:
    assert code_of(status) is wanted


@pytest.mark.parametrize(
    ("status", "label", "wanted"),
    [
        ("running", "user", Code.PATCHED),
        ("scouting", "user", Code.PATCHED),
        ("pending", "user", Code.PATCHED),
        ("running", "managed", Code.IS_ACTIVE),
        ("ready", "user", Code.IS_ACTIVE),
        ("done", "user", Code.AGAIN),
    ],
)
def test_a_running_task_of_a_user_can_be_changed_in_place(status: str, label: str, wanted: Code) -> None:
    assert code_of(status, label, allow_active=True) is wanted


def test_without_a_namesake_the_task_is_new() -> None:
    assert decide(unique(), None).code is Code.NEW
    assert decide(parse(d.smallest()), Existing(7, "done")).code is Code.NEW


def test_numbers_are_those_that_clients_know() -> None:
    assert [code.value for code in Code] == [0, 1, 2, 3, 4, 5, 10, 11]
    assert {code.value for code in Code if code.is_accepted} == {0, 3, 5}


def test_a_task_that_runs_again_is_named_with_its_changes() -> None:
    decision = decide(unique(nFilesPerJob=4, ramCount=3000), Existing(77, "done"))
    assert (decision.task_id, decision.memory) == (77, 3000)
    assert decision.changes == {"nFilesPerJob": 4, "ramCount": 3000, "nEvents": 2}
    assert "jediTaskID=77" in decision.sentence


READ = d.template("input", "--in=${IN}", "lab.in")
WRITTEN = d.template("output", "--out=o.${SN}.root", "lab.out")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"jobParameters": [d.constant("-a new.tar.gz -- python3 new.py"), READ, WRITTEN]}, "another command"),
        ({"buildSpec": {"jobParameters": "--bexec make", "archiveName": "s.tar.gz"}}, "another command"),
        ({"transUses": "Toy-2"}, "other software"),
        (
            {
                "jobParameters": [
                    d.constant("-a old.tar.gz -- python3 run.py"),
                    {**READ, "dataset": "lab.more"},
                    WRITTEN,
                ]
            },
            "other inputs",
        ),
        (
            {"jobParameters": [d.constant("-a old.tar.gz -- python3 run.py"), READ, {**WRITTEN, "dataset": "lab.x"}]},
            "other outputs",
        ),
        (
            {"log": d.log("lab.log2"), "jobParameters": [d.constant("other")]},
            "another command, other inputs and other outputs",
        ),
    ],
)
@pytest.mark.parametrize("status", ["done", "running"])
def test_what_running_again_would_not_take_over_is_refused(status: str, changes: dict[str, Any], says: str) -> None:
    line = [d.constant("-a old.tar.gz -- python3 run.py"), READ, WRITTEN]
    stored = {**unique(jobParameters=line, transPath="run_command").raw, "buildSpec": None}
    found = decide(unique(**{"jobParameters": line, **changes}), Existing(7, status, params=stored), allow_active=True)
    assert (found.code, found.task_id, found.changes) == (Code.IS_ACTIVE, 7, {})
    assert (
        f"was submitted with {says}, and would keep them: give" in found.sentence and "jediTaskID=7" in found.sentence
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"nFiles": 5, "site": "CERN", "cliParams": "prun x"}, "is being run again. jediTaskID=7"),
        ({"dsForIN": "lab.in,lab.more"}, "is being run again. jediTaskID=7"),
        ({"coreCount": 8, "maxAttempt": 3}, "is being run again. It keeps its own coreCount, maxAttempt. jediTaskID=7"),
    ],
)
def test_what_is_not_taken_over_and_does_no_harm_is_said(changes: dict[str, Any], says: str) -> None:
    line = [d.constant("-- python3 run.py"), READ, WRITTEN]
    found = decide(unique(jobParameters=line, **changes), Existing(7, "done", params=unique(jobParameters=line).raw))
    assert found.code is Code.AGAIN and found.sentence.endswith(says)


def test_another_sandbox_needs_to_be_asked_for() -> None:
    old, new = ([d.constant(f"-a {name}.tar.gz -- python3 run.py"), READ, WRITTEN] for name in ("old", "new"))
    existing = Existing(7, "done", params=unique(jobParameters=old).raw)
    assert "keeps its own sandbox" in decide(unique(jobParameters=new), existing).sentence
    for same in (unique(jobParameters=old), unique(jobParameters=new, fixedSandbox="new.tar.gz")):
        assert "sandbox" not in decide(same, existing).sentence
    built = {"buildSpec": {"jobParameters": "-i ${IN} -o ${OUT}", "archiveName": "a.tar.gz"}}
    completed = {"buildSpec": {**built["buildSpec"], "transPath": "build_command", "archiveName": "b.tar.gz"}}
    existing = Existing(7, "done", params=unique(jobParameters=[READ], **completed).raw)
    found = decide(unique(jobParameters=[READ], **built), existing)
    assert found.code is Code.AGAIN and "keeps its own sandbox" in found.sentence


def test_a_refusal_changes_nothing() -> None:
    for status in (None, "ready", "broken"):
        assert not decide(unique(nFilesPerJob=4), Existing(7, status)).changes


@given(status=st.sampled_from([None, *TaskStatus]), allow=st.booleans())
def test_every_state_has_one_outcome(status: str | None, allow: bool) -> None:
    found = code_of(status, allow_active=allow)
    assert (found is Code.AGAIN) is (status in AGAIN_FROM)
    assert found is not Code.NEW and (status != "broken" or found is Code.IS_ACTIVE)


def test_what_runs_again_is_at_rest() -> None:
    assert AGAIN_FROM - {"exhausted"} == TASK_FINAL - {"broken"}


@pytest.mark.parametrize(("active", "most", "refused"), [(5, 5, False), (6, 5, True), (999, None, False), (1, 0, True)])
def test_a_user_may_have_so_many_active_tasks(active: int, most: int | None, refused: bool) -> None:
    found = too_many(active, most)
    assert (found is not None) is refused and (found is None or found.code == 10)


# --- changes ---


def test_the_keys_that_change_the_rule_are_those_of_the_changeable_codes() -> None:
    assert set(RULE_KEYS.values()) == CHANGEABLE
    assert {"noInputPooling", "noAutoPause", "forceStaged", "useLocalIO", "nGBPerJob"} <= RULE_KEYS.keys()


@pytest.mark.parametrize(
    ("raw", "changes"),
    [
        ({"nFiles": 3, "taskName": "x", "jobParameters": []}, {"nFiles": 3}),
        ({"dsForIN": "a,b", "dsForIN_2": None}, {"dsForIN": "a,b", "dsForIN_2": None}),
        ({"priority": 900}, {"currentPriority": 900}),
        ({"loopingCheck": False}, {"noLoopingCheck": True}),
        ({"loopingCheck": True}, {"noLoopingCheck": False}),
        ({"loopingCheck": None}, {"noLoopingCheck": None}),
        ({"fixedSandbox": "s.tgz", "sourceURL": "https://c"}, {"fixedSandbox": "s.tgz", "sourceURL": "https://c"}),
        ({"sourceURL": "https://c"}, {}),
        ({"site": None, "excludedSite": []}, {"site": None, "excludedSite": []}),
        ({"coreCount": 8, "maxAttempt": 9, "transPath": "x"}, {}),
    ],
)
def test_only_some_keys_change_a_task(raw: dict[str, Any], changes: dict[str, Any]) -> None:
    assert changes_of(raw) == changes


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"coreCount": 8}, "coreCount"),
        ({"nFiles": 0}, "nFiles"),
        ({"nFiles": "many"}, "nFiles"),
        ({"loopingCheck": "no"}, "loopingCheck"),
        ({"priority": "high"}, "priority"),
        ({"sourceURL": "https://c"}, "sourceURL"),
        ({"dsForIN": "a b"}, "dsForIN"),
        ({"allowInputLAN": "maybe"}, "allowInputLAN"),
    ],
)
def test_changes_of_a_command_are_checked(raw: dict[str, Any], field: str) -> None:
    with pytest.raises(ParamErrors) as caught:
        check_changes(raw)
    assert [error.field for error in caught.value.errors] == [field]


def test_what_a_client_may_send_with_a_command_is_taken() -> None:
    sent = {
        "site": "A",
        "excludedSite": "B,C",
        "includedSite": None,
        "nFilesPerJob": 2,
        "nMaxFilesPerJob": 3,
        "nGBPerJob": 4,
        "nFiles": 5,
        "nEvents": 6,
        "ramCount": 7,
        "maxCoreCount": 8,
        "loopingCheck": False,
        "avoidVP": True,
        "ignoreMissingInDS": True,
        "forceStaged": True,
    }
    assert len(check_changes(sent)) == len(sent)


values = st.none() | st.integers(1, 9) | st.booleans()
dictionaries = st.dictionaries(st.sampled_from(sorted(CHANGEABLE_KEYS)), values)


@given(raw=dictionaries, changes=dictionaries)
def test_null_deletes_a_key_and_the_rest_is_set(raw: dict[str, Any], changes: dict[str, Any]) -> None:
    result = apply_changes(raw, changes)
    for name in raw.keys() | changes.keys():
        wanted = changes[name] if name in changes else raw[name]
        assert (name not in result) if name in changes and wanted is None else result[name] == wanted
    assert apply_changes(result, changes) == result


def test_changes_that_do_not_go_together_are_refused() -> None:
    raw = d.smallest(site="A")
    assert parse(apply_changes(raw, {"nFiles": 3, "site": None})).whole("nFiles") == 3
    with pytest.raises(ParamErrors, match="excluded"):
        parse(apply_changes(raw, {"excludedSite": ["A"]}))


# --- the split rule ---


@pytest.mark.parametrize(
    ("rule", "changes", "wanted"),
    [
        ("NF=2,US=3", {"nFilesPerJob": 5}, "NF=5,US=3"),
        ("NF=2,US=3", {"nFilesPerJob": None}, "US=3"),
        ("", {"avoidVP": True}, "AV=1"),
        ("AV=1", {"avoidVP": False}, ""),
        ("", {"allowInputLAN": "only"}, "IL=2"),
        ("IL=2", {"allowInputLAN": None}, ""),
        ("", {"t1Weight": -1}, "TW=-1"),
        ("", {"forceStaged": True, "useLocalIO": False}, "LI=1"),
        ("", {"forceStaged": None, "useLocalIO": False}, "LI=0"),
        ("LI=1", {"useLocalIO": None}, ""),
        ("NF=2", {"nFiles": 9, "site": "A"}, "NF=2"),
        ("LC=1", {"noLoopingCheck": False}, ""),
    ],
)
def test_changes_reach_the_split_rule(rule: str, changes: dict[str, Any], wanted: str) -> None:
    assert str(changed_rule(SplitRule.parse(rule), changes)) == wanted


def test_a_server_of_sandboxes_that_cannot_be_read_is_refused_by_name() -> None:
    with pytest.raises(ParamErrors) as refused:
        check_changes({"fixedSandbox": "s.tgz", "sourceURL": "http://[x"})
    assert [(fault.field, fault.rule) for fault in refused.value.errors] == [("sourceURL", "pattern")]
