"""Numbers with their nouns and verbs: of one thing and of two."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from django.utils import timezone

from brokerage_app.policy.throttle import JobCounts, Levels, Limit, Situation, ThrottleLimits, throttle
from brokerage_app.policy.userthrottle import Caps
from brokerage_app.vocabulary.verdict import counted
from jedisite.vocabulary.words import filled, plural, shortened, thousands
from tasks_app.attention import bell, keeping
from tasks_app.attention.rules.findings import Found
from tasks_app.explaining.rules.wait_facts import AgentFact
from tasks_app.templatetags import dashboard
from tasks_app.upkeep.rules.usercaps import UserLoad, over
from tests.conftest import __file__ as conftest

ROOT = Path(conftest).parents[1]


@pytest.mark.parametrize(("number", "said"), [(1, "1 file is"), (2, "2 files are"), (0, "0 files are")])
def test_a_number_has_its_noun_and_verb(number: int, said: str) -> None:
    assert plural(number, "file is", "files are") == said


def test_large_numbers_have_their_thousands_apart_everywhere() -> None:
    assert [thousands(number) for number in (0, 9999, 10_000, -1_234_567)] == [
        "0",
        "9999",
        "10\u202f000",
        "-1\u202f234\u202f567",
    ]
    assert plural(200_000, "piece") == "200\u202f000 pieces"
    assert filled("{:job is|jobs are} queued, {} may be", (12_345, 7)) == "12\u202f345 jobs are queued, 7 may be"
    said = over(UserLoad(running=12_000, queued=0, cores=0), Caps(jobs=10_500))
    assert said == "12\u202f000 jobs are running, the cap is 10\u202f500"
    queued = JobCounts(not_running=30_000, running=10)
    told = throttle(Situation("MC", jobs=Levels(*[queued] * 3)), ThrottleLimits(queue_limit=Limit(20_000)))
    assert "30\u202f000 jobs are queued, the limit is 20\u202f000" in told.detail


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"site_offline": 1}, "1 site offline"),
        ({"site_offline": 2, "low_memory": 1}, "2 sites offline, 1 low memory"),
        ({"not_preassigned": 1, "low_memory": 2}, "1 not the task's site, 2 low memory"),
        ({"queue_full": 2, "queue_full_of_type": 1}, "2 queues full, 1 queue full of type"),
    ],
)
def test_sites_that_a_code_skipped(counts: dict[str, int], said: str) -> None:
    assert counted(counts) == said


@pytest.mark.parametrize(
    ("jobs", "said"), [(1, "1 job is running, the cap is 0"), (2, "2 jobs are running, the cap is 0")]
)
def test_jobs_of_a_user(jobs: int, said: str) -> None:
    assert over(UserLoad(jobs, 0, 0), Caps(jobs=0)) == said


@pytest.mark.parametrize(("items", "said"), [(1, "(took 1 s, 1 item)"), (2, "(took 1 s, 2 items)")])
def test_items_of_a_pass(items: int, said: str) -> None:
    assert said in AgentFact("feeder", took_s=1.0, items=items).last_pass


@pytest.mark.parametrize(("jobs", "said"), [(2, "2 jobs run, the cap is 1"), (3, "3 jobs run, the cap is 1")])
def test_jobs_that_the_throttle_counts(jobs: int, said: str) -> None:
    counts = JobCounts(jobs, 0, 0, 0)
    seen = Situation("MC simul", jobs=Levels(counts, counts, counts))
    assert throttle(seen, ThrottleLimits(running_cap=Limit(1))).detail == said


@pytest.mark.django_db
@pytest.mark.parametrize(("items", "said"), [(0, "No items need"), (1, "1 item needs"), (2, "2 items need")])
def test_the_bell(items: int, said: str) -> None:
    now = timezone.now()
    keeping.keep(["asks"], [Found("asks", str(n), f"item {n}", "/tasks/", "ada", n) for n in range(items)], now)
    bell.forget()
    assert dashboard.attention_bell()["words"] == f"{said} attention"


@pytest.mark.parametrize(
    ("text", "longest", "wanted"),
    [
        ("", 5, ""),
        ("abc def", 7, "abc def"),
        ("abc def ghi", 9, "abc def …"),
        ("abc def", 5, "abc …"),
        ("abcdefghij", 5, "abcd…"),
        ("long long long long long", 15, "long long …"),
        ("long long long long long", 16, "long long long …"),
        ("wait until the dataset is closed", 20, "wait until the …"),
    ],
)
def test_a_text_is_cut_between_words(text: str, longest: int, wanted: str) -> None:
    assert shortened(text, longest) == wanted and len(wanted) <= longest


@pytest.mark.parametrize(
    ("template", "values", "said"),
    [
        ("{:job is|jobs are} queued, {} may be", (1, 20), "1 job is queued, 20 may be"),
        ("{:job is|jobs are} queued, {} may be", (2, 20), "2 jobs are queued, 20 may be"),
        ("{1} has {0:known copy|known copies}", (0, "mc.in"), "mc.in has 0 known copies"),
        ("at most {:.0f} MB may be, {} are ({:file|files})", (9.6, 12, 1), "at most 10 MB may be, 12 are (1 file)"),
        ("no room for words of a|b: {}", ("{x}",), "no room for words of a|b: {x}"),
    ],
)
def test_a_template_has_its_nouns_and_verbs(template: str, values: tuple[object, ...], said: str) -> None:
    assert filled(template, values) == said


THINGS = (
    "jobs|files|sites|queues|cores|events|tasks|copies|datasets|storages|endpoints|kinds|shares|pilots|workers|slots|attempts|"
    "times|builds|outputs|inputs|nuclei|tags|platforms|paths|calls"
)
NO_NUMBERS_OF_THINGS = frozenset(
    {
        "the queue takes only {} jobs",
        " ({} of the {} cores of a slot of {} MB)",
    }
)
"""What stands there is a word, or a number that is never 1."""


def test_no_refusal_speaks_of_1_jobs() -> None:
    """Templates of refusals give a number what belongs to it, of one and of several."""
    found = [
        f"{path.name}:{node.lineno}: {node.value}"
        for path in sorted((ROOT / "brokerage_app").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(rf"\{{[0-9]?\}} (more |other |output |input )?({THINGS})\b", node.value)
        and node.value not in NO_NUMBERS_OF_THINGS
    ]
    assert not found
