from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.fingerprints import LONGEST_TEXT, category_of, fingerprint_of, node_of, normalised, version_of

MESSAGES = [
    ("Process exited with code 65 after 12.5s", "Process exited with code <n> after <n>s"),
    ("cannot open '/data/x/y.root': no such file", "cannot open <name>: no such file"),
    ("cannot open /data/x/y.root: no such file", "cannot open <path>: no such file"),
    ("can't read file DAOD_PHYS.12345678._000012.pool.root.1", "can't read file <name>"),
    ("copy to root://eos.cern.ch:1094//eos/x/y?z=1 failed", "copy to <url> failed"),
    ("host wn123.grid.example.org is gone", "host <host> is gone"),
    (
        "wrote no o.txt, which was to become user.demo.noout.000001.o.txt.",
        "wrote no o.txt, which was to become <file>.",
    ),
    ("mailbox wn1.grid.example.org:2222 and me@lxplus.cern.ch", "mailbox <host> and <host>"),
    ("connect to 10.0.3.17:8443 timed out", "connect to <host> timed out"),
    ("no heartbeat since 2026-11-22T08:00:01.5Z.", "no heartbeat since <time>."),
    ("at 2026-11-22 08:00:01 the pilot was killed", "at <time> <time> the pilot was killed"),
    ("guid 0f2b5e0a-6d1e-4a52-9f0f-1d7f1f0d8a11 is not there", "guid <uuid> is not there"),
    ("adler32 differs: ad:5c2f01a9 and 0x7f3a", "adler32 differs: <hex> and <hex>"),
    ("container 3f2a9c1 and lib_5c2f01a9.so", "container <hex> and lib_<hex>.so"),
    ("container c0ffee7 and lib_1234567f.so", "container <hex> and lib_<hex>.so"),
    ("core.deadbeef12 from 0x7f3a-0x80cc", "core.<hex> from <hex>-<hex>"),
    ("core.1eadbeefff from 0x1-0xff", "core.<hex> from <hex>-<hex>"),
    ("no sandbox.deadbeefcafeab1f here", "no <name> here"),
    ("read 100000b of 20b in 3e5 s, run 2 of feb1", "read <n>b of <n>b in <n>e<n> s, run <n> of feb<n>"),
    ("memory 3,912MB exceeds 2000 MB (rss=4006912kB)", "memory <n>MB exceeds <n> MB (rss=<n>kB)"),
    ("job_42_x failed", "job_<n>_x failed"),
    ("stage-in and/or I/O error", "stage-in and/or I/O error"),
    ("java.lang.NullPointerException", "java.lang.NullPointerException"),
    ("  two\n lines\t here ", "two lines here"),
    ("", ""),
]


def test_what_differs_from_job_to_job_is_masked() -> None:
    assert [(said, normalised(said)) for said, _ in MESSAGES] == MESSAGES


@given(st.text(alphabet=st.sampled_from("ab f09'\"`<>/.:-_@=,;()\n\tñ٣eE+xX"), max_size=400) | st.text(max_size=1200))
def test_to_normalise_twice_changes_nothing(said: str) -> None:
    once = normalised(said)
    assert normalised(once) == once
    assert len(once) <= LONGEST_TEXT


@pytest.mark.parametrize("unit", ["'", "a.", "1.", "/", "a/", "0x", "a-1", "<", "f", "7", "' a", '"x', "::", "a@b."])
def test_long_messages_of_any_kind_take_little_time(unit: str) -> None:
    normalised.cache_clear()
    started = time.process_time()
    for length in (10_000, 1000, 999):
        normalised(unit * length)
    assert time.process_time() - started < 0.25


def test_failed_jobs_have_a_category_by_their_main_error() -> None:
    print_, example = fingerprint_of(
        {"pilot_error_code": 1305, "trans_exit_code": "65", "exe_error_diag": "exit 65 at 12:00:01"}
    )
    assert (print_.component, print_.code, print_.text, print_.category) == (
        "trans",
        "65",
        "exit <n> at <time>",
        "payload",
    )
    assert example == "exit 65 at 12:00:01"
    assert fingerprint_of({})[0].category == "unknown"
    assert fingerprint_of({"pilot_error_code": 1099})[0].text == "An input file could not be copied to the worker node."
    categories = {
        ("pilot", "1099"): "stage-in",
        ("pilot", "-1235"): "memory",
        ("pilot", "9999"): "pilot",
        ("ddm", "200"): "data",
        ("jobdispatcher", "100"): "lost",
        ("taskbuffer", "102"): "system",
        ("nobody", "1"): "unknown",
    }
    assert {pair: category_of(*pair) for pair in categories} == categories


def test_nodes_lose_their_slots_and_pilots_keep_their_versions() -> None:
    assert [node_of(n) for n in ("slot1_3@wn1.example", "wn1.example", "")] == ["wn1.example", "wn1.example", ""]
    said = {
        "http://x/y|SITE|PR|3.7.2.5": "3.7.2.5",
        "jedisite-pilot 1": "jedisite-pilot 1",
        "": "",
        "tag|3.1.0": "3.1.0",
    }
    assert {pilot: version_of(pilot) for pilot in said} == said
