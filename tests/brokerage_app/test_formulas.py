import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app import memory, resource_types, walltime


@pytest.mark.parametrize(
    ("ram", "unit", "base", "cores", "total"),
    [
        (2000, "MB", 500, 8, 2000),
        (2000, "", 0, 1, 2000),
        (2000, "MBPerCore", 1000, 8, 17000),
        (2000, "MBPerCoreFixed", 0, 2, 4000),
        (2000, "MBPerCore", 100, 0, 2100),
    ],
)
def test_job_memory(ram: int, unit: str, base: int, cores: int, total: int) -> None:
    assert memory.job_memory_mb(ram, unit, base_mb=base, cores=cores) == total


@pytest.mark.parametrize(
    ("ram", "unit", "base", "cores", "total"), [(2000, "MBPerCore", 1000, 8, 15300), (4000, "MB", 500, 1, 4050)]
)
def test_compensated_job_memory(ram: int, unit: str, base: int, cores: int, total: int) -> None:
    assert memory.compensated_job_memory_mb(ram, unit, base_mb=base, cores=cores) == total


def test_an_unknown_memory_unit_raises() -> None:
    with pytest.raises(ValueError, match="GBPerCore"):
        memory.job_memory_mb(2, "GBPerCore")


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
    assert resource_types.type_of_task(cores, ram, unit, base_mb=base) == name


@pytest.mark.parametrize(
    ("cores", "memory_mb", "name"),
    [(1, 2000, "SCORE"), (1, 2001, "SCORE_HIMEM"), (8, 16000, "MCORE"), (0, 10, "SCORE")],
)
def test_resource_type_of_a_job(cores: int, memory_mb: int, name: str) -> None:
    assert resource_types.type_of_job(cores, memory_mb) == name


def test_the_first_row_wins_and_none_is_undefined() -> None:
    first = resource_types.ResourceType("FIRST", 1, 4)
    table = (first, resource_types.ResourceType("SECOND", 1, 8))
    assert resource_types.type_of(2, 100, table) == "FIRST"
    assert resource_types.type_of(6, 100, table) == "SECOND"
    assert resource_types.type_of(9, 100, table) == "Undefined"
    assert resource_types.type_of(1, 1, ()) == "Undefined"


@given(cores=st.integers(1, 256), memory_mb=st.integers(0, 10**7))
def test_the_default_table_has_a_type_for_every_job(cores: int, memory_mb: int) -> None:
    name = resource_types.type_of_job(cores, memory_mb)
    assert name.startswith("SCORE" if cores == 1 else "MCORE")


def test_kinds_of_resource_types() -> None:
    kinds = {
        row.name: (row.is_single_core, row.is_multi_core, row.is_high_memory) for row in resource_types.DEFAULT_TABLE
    }
    assert kinds == {
        "SCORE": (True, False, False),
        "SCORE_HIMEM": (True, False, True),
        "MCORE": (False, True, False),
        "MCORE_HIMEM": (False, True, True),
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
