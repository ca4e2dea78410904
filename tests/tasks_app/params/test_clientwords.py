"""Faults of what prun submits name prun's options."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.params.clientwords import in_options, option_of
from tasks_app.params.differences import differences
from tasks_app.params.faults import FieldError, ParamErrors
from tasks_app.params.schema import parse

PRUN: dict[str, Any] = {
    "taskName": "user.ada.x/",
    "processingType": "panda-client-1.6.4-jedi-run",
    "prodSourceLabel": "user",
    "noInput": True,
    "nEvents": 1,
    "jobParameters": [
        {"type": "constant", "value": "-r ."},
        {"type": "constant", "value": "-o \"{'a.txt': 'user.ada.$JEDITASKID._${SN/P}.a.txt'}\""},
        {
            "type": "template",
            "param_type": "output",
            "value": "x.$JEDITASKID._${SN/P}.a.txt",
            "dataset": "user.ada.x_a.txt/",
        },
        {"type": "template", "param_type": "input", "value": '-i "${IN/T}"', "dataset": "user.ada.in"},
        {"type": "template", "param_type": "input", "value": "${MIN/T}", "dataset": "user.ada.second", "hidden": True},
        {"type": "template", "param_type": "input", "value": "--dbrFile=${DBR}", "dataset": "ddo.1"},
    ],
    "log": {
        "type": "template",
        "param_type": "log",
        "value": "x.$JEDITASKID.${SN}.log.tgz",
        "dataset": "user.ada.x.log/",
    },
}


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("jobParameters[3].dataset", "--inDS"),
        ("jobParameters[4].dataset", "--secondaryDSs"),
        ("jobParameters[5].dataset", "--dbRelease"),
        ("jobParameters[2].destination", "--destSE"),
        ("jobParameters[2].dataset", "--outDS"),
        ("jobParameters[2].value", "--outputs"),
        ("jobParameters[3].include[0]", "--match"),
        ("jobParameters[0].value", "jobParameters[0].value"),
        ("jobParameters[99].dataset", "jobParameters[99].dataset"),
        ("log.dataset", "--outDS"),
        ("taskName", "--outDS"),
        ("ramCount", "--memory"),
        ("dsForIN", "--inDS"),
        ("site", "--site"),
        ("osInfo", "osInfo"),
        ("", ""),
    ],
)
def test_a_field_is_named_by_the_option_that_gave_it(field: str, option: str) -> None:
    assert option_of(field, PRUN) == option


def test_one_option_that_gives_two_fields_is_named_once_and_other_doors_keep_the_fields() -> None:
    faults = ParamErrors(
        tuple(FieldError(name, "known", "There is none.") for name in ("jobParameters[3].dataset", "dsForIN"))
    )
    assert str(in_options(faults, PRUN)) == "--inDS: There is none."
    assert in_options(faults, {**PRUN, "processingType": "test"}) is faults


def test_one_more_output_is_no_other_command() -> None:
    more = [dict(item) for item in PRUN["jobParameters"]]
    more[1]["value"] = more[1]["value"].replace("{", "{'b.txt': 'user.ada.$JEDITASKID._${SN/P}.b.txt', ", 1)
    assert differences(parse({**PRUN, "jobParameters": more}), PRUN, ()).work == ("other outputs",)
    more[0]["value"] = "-r elsewhere"
    assert differences(parse({**PRUN, "jobParameters": more}), PRUN, ()).work == ("another command", "other outputs")
    assert differences(parse(PRUN), PRUN, ()).work == ()
