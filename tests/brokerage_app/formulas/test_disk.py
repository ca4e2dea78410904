import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas.disk import (
    Atom,
    Size,
    analysis_need_mb,
    lacks_scratch,
    production_need_mb,
    size_of,
    work_dir_for_job_mb,
)

ATOM = Atom(input_mb=8192, effective_mb=8192, events=1000)


@pytest.mark.parametrize(
    ("count", "unit", "size"),
    [
        (500, "kB", Size(512000)),
        (500, None, Size(512000)),
        (2, "MB", Size(2 * 2**20)),
        (1, "GB", Size(2**30)),
        (7, "B", Size(7)),
        (3, "kBPerEvent", Size(3072, per_event=True)),
        (3, "kBPerEventFixed", Size(3072, per_event=True)),
        (3, "kBFixed", Size(3072)),
        (None, "kB", Size(0)),
        (0.5, "kB", Size(512)),
    ],
)
def test_units_of_disk(count: float | None, unit: str | None, size: Size) -> None:
    assert size_of(count, unit) == size


def test_an_unknown_unit_of_disk_raises() -> None:
    with pytest.raises(ValueError, match="floppies"):
        size_of(1, "floppies")


@pytest.mark.parametrize(
    ("out", "unit", "work", "direct", "need"),
    [
        (500, "kB", 200, False, 12492),
        (500, "kB", 200, True, 4300),
        (100, "kB", 1000, False, 10692),
        (4, "MBPerEvent", 200, False, 12492),
        (0, "kB", 0, True, 1800),
    ],
)
def test_scratch_of_production(out: int, unit: str, work: int, direct: bool, need: int) -> None:
    assert production_need_mb(ATOM, size_of(out, unit), size_of(work, "MB"), direct_io=direct) == need


def test_scratch_of_analysis() -> None:
    atom, out, work = Atom(4096, 4096), size_of(300, "kB"), size_of(500, "MB")
    assert analysis_need_mb(atom, out, work) == 5796
    assert analysis_need_mb(atom, out, work, direct_io=True) == 1700
    assert analysis_need_mb(atom, out, work, merging=True) == 8192
    assert analysis_need_mb(atom, out, work, job_size_mb=10240) == 10240
    assert analysis_need_mb(atom, out, work, job_size_mb=1024) == 5796
    assert analysis_need_mb(atom, out, work, direct_io=True, job_size_mb=10240) == 3500
    assert analysis_need_mb(Atom(), Size(), Size()) == 0


def test_the_result_is_truncated_to_whole_megabytes() -> None:
    assert production_need_mb(Atom(0.9, 0.9), Size(), Size(), direct_io=False) == 1800
    assert analysis_need_mb(Atom(1.99, 1.99), Size(), Size()) == 1


@pytest.mark.parametrize(
    ("cores", "task_cores", "part"), [(8, 1, 12500), (8, None, 12500), (8, 0, 12500), (8, 8, 100000), (0, 1, 100000)]
)
def test_a_single_core_job_gets_the_part_of_one_core(cores: int, task_cores: int | None, part: float) -> None:
    assert work_dir_for_job_mb(100_000, cores, task_cores) == part


def test_a_need_that_fits_exactly_fits() -> None:
    assert lacks_scratch(12492, 100_000, 8, 1) is None
    assert lacks_scratch(12500, 100_000, 8, 1) is None
    assert lacks_scratch(10**9, 0, 8, 1) is None
    refused = lacks_scratch(12692, 100_000, 8, 1)
    assert refused is not None and refused.code == "scratch_disk"
    assert refused.detail == "needs 12692 MB, the site gives 12500 MB (100000 MB in slots of 8 cores)"


sizes = st.builds(Size, st.integers(0, 10**9), st.booleans())
atoms = st.builds(Atom, st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 10**6))


@given(atom=atoms, out=sizes, work=sizes)
def test_direct_reading_never_needs_more(atom: Atom, out: Size, work: Size) -> None:
    assert 1800 <= production_need_mb(atom, out, work, direct_io=True) <= production_need_mb(atom, out, work)
    assert analysis_need_mb(atom, out, work, direct_io=True) <= analysis_need_mb(atom, out, work)
    assert analysis_need_mb(atom, out, work) <= production_need_mb(atom, out, work)
