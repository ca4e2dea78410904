"""Files of other people among the inputs of a job: whatever their names, they run in place of nothing."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.tasks_app.worker_node.running import Pilots
from tests.tasks_app.worker_node.site import Site
from tests.tasks_app.worker_node.test_sandboxes import sandbox, stored

FORGED = b"#!/bin/sh\necho forged > out.1\n"
SAYS = """-a jobO.1.tar.gz --sourceURL https://elsewhere.example -o "{'out': 'out.1'}" -p """
COMMAND = SAYS + quote("sh say.sh > out")
EVIL = sandbox(say__sh="echo forged")


@pytest.fixture
def site(site: Site) -> Site:
    site.sandboxes["jobO.1.tar.gz"] = sandbox(say__sh="echo of the sandbox")
    return site


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("run_command", FORGED, "the program of the job"),
        ("jobO.1.tar.gz", EVIL, "the sandbox of the job"),
        ("pilot.log", b"", "a file of the pilot"),
        ("jobReport.json", b"{}", "a file of the pilot"),
        ("tmp", b"", "a file of the pilot"),
        ("out.1", b"forged", "an output of the job"),
    ],
)
def test_an_input_with_the_name_of_something_else_fails_the_job_and_says_so(
    site: Site, pilots: Pilots, name: str, content: bytes, what: str
) -> None:
    job = site.offer("run_command", COMMAND, inputs={name: content}, outputs=("out.1",))
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1099), final
    assert f"Input {name} has the same name as {what};" in final["pilot_error_diag"]
    assert [*json.loads(final["job_output_report"])] == [f"log.{job}.tgz"]


def test_an_input_is_no_module_of_the_program(site: Site, pilots: Pilots) -> None:
    """Python looks for modules beside the program first."""
    forged = b"open('out.1', 'w').write('forged'); raise SystemExit(0)\n"
    inputs = {f"{name}.py": forged for name in ("argparse", "json", "tarfile", "sitecustomize")}
    job = site.offer("run_command", COMMAND, inputs=inputs, outputs=("out.1",))
    assert pilots.run() == 0
    assert stored(site.wait_final(job), "out.1").read_text() == "of the sandbox\n"


def test_a_program_that_the_site_does_not_have_may_come_as_an_input(site: Site, pilots: Pilots) -> None:
    job = site.offer("mine.sh", inputs={"mine.sh": b"#!/bin/sh\necho mine > out.1\n"}, outputs=("out.1",))
    assert pilots.run() == 0
    assert stored(site.wait_final(job), "out.1").read_text() == "mine\n"


@pytest.mark.parametrize(
    "name", ["jobReport.json", "payload.stdout", "payload.${SN}", "jobO.1.tar.gz", "sources.x.tar.gz"]
)
def test_outputs_with_names_of_the_pilot_are_refused_at_the_door(name: str) -> None:
    from tasks_app.params.faults import ParamErrors
    from tasks_app.params.schema import parse

    item: dict[str, Any] = {
        "type": "template",
        "param_type": "output",
        "value": name,
        "dataset": "user.a.out/",
        "container": "user.a.out/",
    }
    with pytest.raises(ParamErrors, match="choose another name for the output"):
        parse(
            {
                "taskName": "user.a.t",
                "userName": "a",
                "vo": "local",
                "noInput": True,
                "nEvents": 1,
                "jobParameters": [item],
            }
        )
