"""What payloads write into their report cannot keep the site from hearing how the job ended."""

from __future__ import annotations

import json

import pytest

from tasks_app.worker_node.pilot.plain import fault_of, plain_text
from tests.tasks_app.worker_node.running import Pilots
from tests.tasks_app.worker_node.site import Site

DEEP = "[" * 70 + "]" * 70
ODD = [
    r'{"a": "\u0000"}',
    r'{"\u0000": 1}',
    r'{"a": "\ud800"}',
    '{"a": NaN}',
    '{"a": 1e999}',
    f'{{"a": {DEEP}}}',
    '{"a": ' + "[" * 990 + "]" * 990 + "}",
]


def writes(report: str, then: str = "exit 0") -> str:
    return f"#!/bin/sh\necho out > out\ncat > jobReport.json <<'END'\n{report}\nEND\n{then}\n"


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_what_the_site_cannot_take_is_left_out_and_said(site: Site, pilots: Pilots, odd: str) -> None:
    job = site.offer(writes(f'{{"nEvents": 3, "results": {odd}}}'), outputs=("out",))
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert final["job_status"] == "finished", final
    assert "meta_data" not in final
    assert "left out" in final["pilot_error_diag"]
    assert set(json.loads(final["job_output_report"])) == {"out", f"log.{job}.tgz"}


def test_the_words_of_a_failure_are_made_such_as_can_be_stored(site: Site, pilots: Pilots) -> None:
    said = r'{"failure": {"kind": "no_sandbox", "text": "gone\u0000 \ud800 away"}}'
    job = site.offer(writes(said, "exit 71"))
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1246)
    assert final["pilot_error_diag"].startswith("gone\ufffd") and final["pilot_error_diag"].endswith(" away")


def test_a_refused_report_is_told_again_without_what_it_can_do_without(site: Site, pilots: Pilots) -> None:
    site.unacceptable = ("meta_data",)
    job = site.offer(writes('{"nEvents": 3, "results": {"a": 1}}'), outputs=("out",))
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert final["job_status"] == "finished", final
    assert "meta_data makes no sense" in final["pilot_error_diag"]
    assert set(json.loads(final["job_output_report"])) == {"out", f"log.{job}.tgz"}


def test_a_report_that_is_refused_again_fails_the_job_with_that_reason(site: Site, pilots: Pilots) -> None:
    site.unacceptable = ("job_output_report",)
    job = site.offer(writes("{}"), outputs=("out",))
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1319)
    assert "(files: 2) was refused: job_output_report makes no sense" in final["pilot_error_diag"]
    assert not [path for path in site.storage.rglob("*") if path.is_file()], "nobody hears of these files"


def test_what_can_be_stored_is_left_as_it_is() -> None:
    assert fault_of({"a": [1, 2.5, "ä\n", None, True, {"b": []}]}) == ""
    assert plain_text("ä\n🙂") == "ä\n🙂"
