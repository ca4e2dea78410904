"""Each benchmark runs with small sizes and ends with its figures as JSON. How fast it was says nothing here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from brokerage_app.models.statistics import JobCount
from tasks_app.labs.bench.measuring import Rates, Target, in_turn
from tasks_app.labs.bench.page_addresses import addresses

ROOT = Path(__file__).resolve().parents[3]
SMALL = {
    "events": ["2000", "1000", "100", "2000"],
    "feed": ["300"],
    "generate": ["300", "10", "50"],
    "dispatch": ["400", "300", "500"],
    "report": ["400", "300", "50"],
    "http": ["200", "100"],
    "million": ["2000"],
    "latency": ["1"],
    "shares": ["200", "10", "30", "100"],
}


def bench(*arguments: str, **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "manage.py", "bench", *arguments, "--rounds", "1", "--json"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"bench {arguments[0]}: ") and "; 1 round, " in first
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def databases() -> set[str]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database WHERE datname LIKE '%bench%'")}


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_ends_with_its_figures_and_leaves_no_database(name: str) -> None:
    found = bench(name, *SMALL[name])
    assert found["benchmark"] == name
    assert found["rate"] > 0 and found["raw"] > 0 and found["ratio"] > 0
    assert found["ratio_min"] <= found["ratio"] <= found["ratio_max"]
    assert found["targets"] and all({"name", "value", "need", "met"} <= set(target) for target in found["targets"])
    assert all(case["min"] <= case["median"] <= case["max"] for case in found["cases"].values())
    assert not databases()


def test_verdicts_are_measured_without_a_database() -> None:
    found = bench("broker", "20", "60", "3", DATABASE_URL="postgresql://nobody@127.0.0.1:1/nowhere")
    assert found["median_ms"] > 0 and found["ratio_2000"] > 0 and found["explain_ratio"] > 0
    assert (found["queues"], found["large_queues"], found["verdicts"], found["queries"]) == (20, 60, 3, 0)
    assert {target["name"] for target in found["targets"]} >= {"explaining / deciding"}


def test_every_page_is_measured_on_a_database_that_was_filled_for_it() -> None:
    found = bench("pages", "--tasks", "30", "--jobs", "300", "--files", "600")
    assert found["median_ms"] > 0 and found["worst_ms"] >= found["median_ms"] and found["worst_queries"] > 0
    assert found["raw"] > 0 and found["ratio"] > 0 and found["sizes"]["tasks"] == 30
    pages = {page["path"]: page for page in found["pages"]}
    assert {"/", "/tasks/", "/jobs/", "/tasks/?status=running"} <= set(pages)
    assert all(page["median_ms"] > 0 and page["queries"] >= 0 and page["name"] for page in found["pages"])
    assert any("/jobs/1" in path or "/jobs/2" in path for path in pages)
    assert all(export["rows"] > 30 for export in found["exports"])
    assert not databases()


def test_without_a_server_a_benchmark_starts_its_own(tmp_path: Path) -> None:
    found = bench("feed", "100", DATABASE_URL="", JEDI_HOME=str(tmp_path / "home"))
    assert found["sizes"] == {"files": 100}
    assert not (tmp_path / "home" / "postgres").exists()


def test_a_ratio_compares_cases_of_the_same_round() -> None:
    rates = Rates({"ours": [10.0, 40.0, 9.0], "raw": [20.0, 80.0, 30.0]})
    assert rates.ratios("ours", "raw") == [0.5, 0.5, 0.3]
    assert rates.ratio("ours", "raw") == 0.5


def test_cases_run_in_turn_and_every_second_round_backwards() -> None:
    ran: list[str] = []

    def case(name: str) -> float:
        ran.append(name)
        return 1.0

    in_turn({"a": lambda: case("a"), "b": lambda: case("b")}, 3, lambda text: None)
    assert "".join(ran) == "abbaab"


def test_a_target_says_whether_it_is_met() -> None:
    assert Target("ratio", 0.5, 0.4, 0.6).sentence() == "pass: ratio 0.5 (at least 0.4, aim 0.6)"
    assert Target("ratio", 0.3, 0.4).sentence().startswith("FALLS SHORT")
    assert Target("ms", 30, 100, 50, at_most=True).sentence() == "aim reached: ms 30 (at most 100, aim 50)"


@pytest.mark.django_db
def test_pages_of_a_home_whose_jobs_have_no_share_are_those_of_other_things() -> None:
    JobCount.objects.create(
        site="", share="", work_queue_id=0, resource_type="", label="user", status="activated", jobs=3, cores=3
    )
    found = addresses()
    assert {"tasks", "shares"} <= {one.page for one in found}
    assert not [one.path for one in found if "//" in one.path or one.path.endswith("share=")]
    JobCount.objects.update(share="Analysis", site="SITE_A")
    assert any(one.path == "/shares/Analysis/why/" for one in addresses())
