import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas import memory, resource_type_of, walltime
from brokerage_app.vocabulary import resource_types


@pytest.mark.parametrize(
    ("ram", "unit", "base", "cores", "production", "analysis"),
    [
        (2000, "MBPerCore", 1000, 8, 15300, 15300),
        (2000, "MBPerCore", 1000, 0, 2700, 2700),
        (4000, "MB", 500, 1, 3600, 4050),
        (4000, "MB", 500, 8, 3600, 4050),
        (2001, "MB", 0, 1, 1800, 1800),
    ],
)
def test_memory_that_jobs_ask_of_a_slot(
    ram: int, unit: str, base: int, cores: int, production: int, analysis: int
) -> None:
    assert memory.production_need_mb(ram, unit, base_mb=base, cores=cores) == production
    assert memory.analysis_need_mb(ram, unit, base_mb=base, cores=cores) == analysis


def test_merge_jobs_have_one_core_and_no_base() -> None:
    for need in (memory.production_need_mb, memory.analysis_need_mb):
        assert need(4000, "MBPerCore", base_mb=500, cores=8, merging=True) == 3600


@pytest.mark.parametrize(
    ("need", "least", "most", "code"),
    [
        (15300, 0, 16000, None),
        (15300, 0, 15300, None),
        (15300, 15300, 0, None),
        (15300, 0, 12000, "low_memory"),
        (15300, 16001, 32000, "high_memory"),
        (4050, 0, 4000, "low_memory"),
        (0, 2001, 4000, None),
        (10**6, 0, 0, None),
    ],
)
def test_limits_of_memory_are_inclusive(need: int, least: int, most: int, code: str | None) -> None:
    refused = memory.outside(need, least, most)
    assert (refused.code if refused else None) == code


def test_an_unknown_memory_unit_raises() -> None:
    with pytest.raises(ValueError, match="GBPerCore"):
        memory.production_need_mb(2, "GBPerCore")


@pytest.mark.parametrize(
    ("cores", "ram", "base", "unit", "per_core", "name"),
    [
        (1, 2000, 0, "MB", 1800, "SCORE"),
        (1, 2300, 0, "MB", 2070, "SCORE_HIMEM"),
        (8, 2000, 1000, "MBPerCore", 1912, "MCORE"),
        (8, 2300, 1000, "MBPerCore", 2182, "MCORE_HIMEM"),
        (0, 16000, 0, "MB", 1800, "MCORE"),
        (4, 9000, 0, "MB", 2025, "MCORE_HIMEM"),
        (None, 2000, 0, "MB", 1800, "SCORE"),
    ],
)
def test_resource_type_of_a_task(cores: int | None, ram: int, base: int, unit: str, per_core: int, name: str) -> None:
    assert memory.memory_per_core_mb(ram, unit, base_mb=base, cores=cores) == per_core
    assert resource_type_of.type_of_task(cores, ram, unit, base_mb=base) == name


@pytest.mark.parametrize(
    ("cores", "memory_mb", "name"),
    [(1, 2000, "SCORE"), (1, 2001, "SCORE_HIMEM"), (8, 16000, "MCORE"), (0, 10, "SCORE")],
)
def test_resource_type_of_a_job(cores: int, memory_mb: int, name: str) -> None:
    assert resource_type_of.type_of_job(cores, memory_mb) == name


def test_the_first_row_wins_and_none_is_undefined() -> None:
    first = resource_types.ResourceType("FIRST", 1, 4)
    table = (first, resource_types.ResourceType("SECOND", 1, 8))
    assert resource_type_of.type_of(2, 100, table) == "FIRST"
    assert resource_type_of.type_of(6, 100, table) == "SECOND"
    assert resource_type_of.type_of(9, 100, table) == "Undefined"
    assert resource_type_of.type_of(1, 1, ()) == "Undefined"


@given(cores=st.integers(1, 256), memory_mb=st.integers(0, 10**7))
def test_the_default_table_has_a_type_for_every_job(cores: int, memory_mb: int) -> None:
    name = resource_type_of.type_of_job(cores, memory_mb)
    assert name.startswith("SCORE" if cores == 1 else "MCORE")


def test_kinds_of_resource_types() -> None:
    kinds = {row.name: (row.is_single_core, row.is_high_memory) for row in resource_types.DEFAULT_TABLE}
    assert kinds == {
        "SCORE": (True, False),
        "SCORE_HIMEM": (True, True),
        "MCORE": (False, False),
        "MCORE_HIMEM": (False, True),
    }


@pytest.mark.parametrize(
    ("cpu", "cores", "power", "efficiency", "base", "seconds"),
    [
        (36_000, 2, 10.0, 90, 600, 2600),
        (1, 1, 10.0, 100, 0, 1),
        (36_000, 2, 10.0, 0, 600, 600),
        (0, 1, 10.0, 90, 60, 60),
        (100, 0, 0.0, 100, 0, 10),
        (1, 1, 5e-324, 1, 0, 10),
        (1e300, 1, 10.0, 100, 1, 2**31),
    ],
)
def test_walltime(cpu: float, cores: int, power: float, efficiency: int, base: int, seconds: int) -> None:
    found = walltime.expected_walltime_s(cpu, cores=cores, core_power=power, efficiency_percent=efficiency, base_s=base)
    assert found == seconds


@pytest.mark.parametrize(
    ("unit", "value"), [("HS06sPerEvent", 250.0), ("mHS06sPerEvent", 0.25), ("mHS06sPerEventFixed", 0.25), ("", 250.0)]
)
def test_cpu_time_units(unit: str, value: float) -> None:
    assert walltime.hs06s_per_event(250.0, unit) == pytest.approx(value)


def test_an_unknown_cpu_time_unit_raises() -> None:
    with pytest.raises(ValueError, match="fortnights"):
        walltime.hs06s_per_event(1.0, "fortnights")


F4 = walltime.WalltimeNeed(5000.0 * 1000, base_s=600, efficiency_percent=90)


@pytest.mark.parametrize(
    ("max_s", "min_s", "code"),
    [
        (86400, 0, None),
        (70000, 0, "short_walltime"),
        (0, 72000, "long_walltime"),
        (0, 70044, None),
        (0, 70045, "long_walltime"),
        (70044, 0, "short_walltime"),
        (70045, 0, None),
        (0, 0, None),
    ],
)
def test_time_limits(max_s: int, min_s: int, code: str | None) -> None:
    refused = walltime.too_long(F4, max_s, cores=8, core_power=10) or walltime.too_short(
        F4, min_s, cores=8, core_power=10
    )
    assert (refused.code if refused else None) == code


def test_the_capacity_of_a_time_limit() -> None:
    assert walltime.expected_walltime_s(5_000_000, cores=8, core_power=10, base_s=600) == 70045
    capacity = [
        walltime.capacity_hs06s(s, cores=8, core_power=10, efficiency_percent=90, base_s=600) for s in (86400, 70000)
    ]
    assert capacity == [6177600, 4996800]
    exact = walltime.WalltimeNeed(6177600.0, base_s=600)
    assert walltime.too_long(exact, 86400, cores=8, core_power=10) is None
    assert walltime.too_short(exact, 86400, cores=8, core_power=10) is None
    refused = walltime.too_long(F4, 70000, cores=8, core_power=10)
    assert refused is not None and refused.detail == "needs 5000000, the site gives 4996800 HS06 s in 70000 s"


def test_without_efficiency_only_the_base_counts() -> None:
    need = walltime.WalltimeNeed(5e6, base_s=600, efficiency_percent=0)
    assert walltime.too_long(need, 600, cores=8, core_power=10) is None
    assert walltime.too_long(need, 599, cores=8, core_power=10) is not None
    assert walltime.too_short(need, 600, cores=8, core_power=10) is None
    assert walltime.too_short(need, 601, cores=8, core_power=10) is not None


def test_without_a_unit_of_cpu_time_walltime_is_compared_with_core_seconds() -> None:
    need = walltime.WalltimeNeed(wall_s=3.0 * 1000)
    assert walltime.too_long(need, 1500, cores=2, core_power=10) is None
    assert walltime.too_long(need, 1499, cores=2, core_power=10) is not None
    assert walltime.too_short(need, 1500, cores=2, core_power=10) is None
    assert walltime.too_short(need, 1501, cores=2, core_power=10) is not None


def test_a_time_that_is_not_known_is_never_too_long_and_always_too_short() -> None:
    need = walltime.WalltimeNeed()
    assert not need.is_known
    assert walltime.too_long(need, 60, cores=1, core_power=10) is None
    refused = walltime.too_short(need, 60, cores=1, core_power=10)
    assert refused is not None and refused.detail == "its time is not known, the site requires at least 60 s"


def test_jobs_that_take_as_many_events_as_fit() -> None:
    need = walltime.WalltimeNeed(1000.0, efficiency_percent=100, least_cpu_hs06s=100.0, most_cpu_hs06s=5000.0)
    ask = {"cores": 1, "core_power": 10.0}
    assert walltime.too_long(need, 50, **ask) is not None  # without a shortest time the atom counts
    assert walltime.too_long(need, 50, min_s=1, **ask) is None
    assert walltime.too_long(need, 9, min_s=1, **ask) is not None
    assert walltime.too_short(need, 500, **ask) is None
    assert walltime.too_short(need, 501, **ask) is not None


@pytest.mark.parametrize(
    ("values", "undefined"),
    [
        ((None, None, None, None), True),
        ((None, None, None, "HS06sPerEvent"), True),
        ((None, None, 10.0, "HS06sPerEvent"), False),
        ((None, None, 0, "HS06sPerEvent"), False),
        ((5, None, None, None), False),
        ((0, "kSI2kseconds", None, None), False),
        ((5, "s", None, "HS06sPerEvent"), True),
    ],
)
def test_when_walltime_is_undefined(
    values: tuple[float | None, str | None, float | None, str | None], undefined: bool
) -> None:
    assert walltime.is_undefined(*values) is undefined


@given(
    cpu=st.floats(1, 1e9),
    limit=st.integers(1, 10**7),
    cores=st.integers(1, 128),
    power=st.floats(1, 50),
    efficiency=st.integers(1, 100),
    base=st.integers(0, 10**4),
)
def test_the_test_of_a_limit_agrees_with_the_walltime(
    cpu: float, limit: int, cores: int, power: float, efficiency: int, base: int
) -> None:
    need = walltime.WalltimeNeed(cpu, base_s=base, efficiency_percent=efficiency)
    seconds = cpu / (cores * power * efficiency / 100) + base
    refused = walltime.too_long(need, limit, cores=cores, core_power=power) is not None
    slack = 1 / (cores * power * efficiency / 100) + 1e-6  # the capacity is cut to whole HS06 seconds
    if abs(seconds - limit) > slack:
        assert refused == (seconds > limit)
