"""The one setting of a queue that would admit most tasks."""

from __future__ import annotations

from tasks_app.explaining.rules.admitting import proposals

LIMITS = {
    "status": "test",
    "max_memory_mb": 2000,
    "min_memory_mb": 1000,
    "max_walltime_s": 172_800,
    "work_dir_mb": None,
}


def test_the_setting_that_stands_in_the_way_of_most_tasks_comes_first() -> None:
    skips = [
        (1, "low_memory", [3000, 2000, 8]),
        (2, "low_memory", [2500, 2000]),
        (2, "low_memory", [9000, 2000]),
        (3, "short_walltime", [60, 48]),
        (4, "no_release", ["x"]),
        (5, "low_memory", []),
        (6, "scratch_disk", [9, 3]),
        (7, "site_test_only", []),
        (8, "site_test_only", []),
        (9, "site_test_only", []),
        (10, "high_memory", [500, 1000]),
    ]
    found = [(one.setting.column, one.value, one.tasks, one.example) for one in proposals(skips, LIMITS)]
    assert found == [
        ("status", "online", 3, 7),
        ("max_memory_mb", 3000, 2, 1),
        ("max_walltime_s", 216_000, 1, 3),
        ("min_memory_mb", 500, 1, 10),
    ]
    first, second, *_ = proposals(skips, LIMITS)
    assert first.change("Q") == 'site.Q.status="online"' and second.change("Q/A") == "site.Q/A.max_memory_mb=3000"
    assert proposals([], LIMITS) == []


def test_no_limit_is_advised_that_no_site_has() -> None:
    """Of tasks that ask for years, or for more memory than machines have, the description is wrong, not the site."""
    limits = {"max_walltime_s": 86_400, "max_memory_mb": 4000}
    years = (1, "short_walltime", [5e8, 777_600])  # HS06 s, of which the time limit gives so many
    days = (2, "short_walltime", [1_555_200.0, 777_600])
    huge = (3, "low_memory", [900_000_000, 4000])
    found = proposals([years, days, huge], limits)
    assert [(one.setting.column, one.value, one.tasks) for one in found] == [("max_walltime_s", 172_800, 1)]
    slot = {"max_memory_mb": 16_000, "core_count": 8}
    of_eight = [(1, "low_memory", [720_000, 16_000]), (2, "low_memory", [64_000, 16_000])]
    found = proposals(of_eight, slot)
    assert [(one.value, list(one.ratios)) for one in found] == [(64_000, [2])], "90 GB a core are no slot's"
    found = proposals(of_eight, {"max_memory_mb": 2_000, "core_count": 8}, cores=8)
    assert [(one.value, list(one.ratios)) for one in found] == [(8_000, [2])]


def test_space_that_would_admit_tasks_is_that_of_the_storage_that_is_full() -> None:
    full = [(task, "storage_full", [200.0, 5.4, "SE_A"]) for task in (1, 2)]
    other = [(3, "storage_full", [200.0, 1.0, "LOCAL_SE"]), (4, "storage_full", [200, 1.0])]
    first, second = proposals([*full, *other], LIMITS)
    assert (first.title, first.now, first.value, first.tasks) == ("usable space at SE_A", 5, 200, 2)
    assert first.change("Q") == "endpoint.SE_A.space_free_gb=10000"
    assert (second.setting.column, second.tasks) == ("LOCAL_SE", 1)
