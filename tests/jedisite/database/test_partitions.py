"""Partitions: made ahead of need, dropped after their time, and no row is ever without one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest
from django.db import connection
from django.utils import timezone

from jedisite.agents import housekeeping
from jedisite.database import partitions
from tasks_app.models import File

pytestmark = pytest.mark.django_db


@pytest.fixture
def books(db: None) -> Iterator[str]:
    """A table by month with its default partition, and no other."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE books (id int, at timestamptz NOT NULL) PARTITION BY RANGE (at)")
        cursor.execute("CREATE TABLE books_default PARTITION OF books DEFAULT")
    yield "books"


def insert(*times: datetime) -> list[str]:
    """Insert a row for each time; the names of the partitions in which they landed."""
    with connection.cursor() as cursor:
        found = []
        for at in times:
            cursor.execute("INSERT INTO books VALUES (1, %s) RETURNING tableoid::regclass::text", [at])
            found.append(str(cursor.fetchone()[0]))
    return found


def parts(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass ORDER BY 1", [table]
        )
        return [name for (name,) in cursor.fetchall()]


@pytest.mark.parametrize(
    ("day", "months", "expected"),
    [
        (date(2030, 1, 31), 0, date(2030, 1, 1)),
        (date(2030, 1, 31), 1, date(2030, 2, 1)),
        (date(2030, 12, 31), 1, date(2031, 1, 1)),
        (date(2030, 1, 1), -1, date(2029, 12, 1)),
        (date(2030, 6, 15), -18, date(2028, 12, 1)),
        (date(2030, 11, 2), 26, date(2033, 1, 1)),
    ],
)
def test_months_are_counted_over_the_turn_of_the_year(day, months, expected):
    assert partitions.month_start(day, months) == expected


def test_this_month_and_the_next_ones_are_made_once(books):
    made = partitions.ensure_months(books, date(2030, 11, 30))
    assert made == ["books_203011", "books_203012", "books_203101"]
    assert partitions.ensure_months(books, date(2030, 11, 1)) == []
    assert partitions.ensure_months(books, date(2030, 12, 1)) == ["books_203102"]
    assert partitions.months_of(books) == [date(2030, 11, 1), date(2030, 12, 1), date(2031, 1, 1), date(2031, 2, 1)]


def test_rows_land_in_the_partition_of_their_month_and_others_in_the_default(books):
    partitions.ensure_months(books, date(2030, 11, 5))
    landed = insert(
        datetime(2030, 11, 1, tzinfo=UTC),
        datetime(2030, 11, 30, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2030, 12, 1, tzinfo=UTC),
        datetime(2031, 1, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2031, 2, 1, tzinfo=UTC),
        datetime(2030, 10, 31, 23, 59, 59, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
    )
    assert landed == ["books_203011"] * 2 + ["books_203012", "books_203101"] + ["books_default"] * 3


def test_months_begin_at_midnight_utc_wherever_the_server_stands(books):
    with connection.cursor() as cursor:
        cursor.execute("SHOW timezone")
        assert cursor.fetchone()[0] == "UTC"
    partitions.ensure_months(books, date(2030, 11, 5))
    assert insert(datetime(2030, 11, 30, 23, 30, tzinfo=UTC)) == ["books_203011"]


def test_old_months_are_dropped_with_their_rows_and_nothing_else_is(books):
    partitions.ensure_months(books, date(2030, 1, 1))
    partitions.ensure_months(books, date(2030, 4, 1))
    insert(*(datetime(2030, month, 10, tzinfo=UTC) for month in range(1, 7)), datetime(1999, 1, 1, tzinfo=UTC))
    dropped = partitions.drop_old_months(books, date(2030, 4, 30), keep_months=2)
    assert dropped == ["books_203001"]
    assert parts(books) == [
        "books_203002",
        "books_203003",
        "books_203004",
        "books_203005",
        "books_203006",
        "books_default",
    ]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM books")
        assert cursor.fetchone()[0] == 6
    assert partitions.drop_old_months(books, date(2030, 4, 30), keep_months=2) == []
    assert partitions.drop_old_months(books, date(2031, 1, 1), keep_months=0)[-1] == "books_203006"


def test_a_month_is_made_even_when_its_rows_came_first(books):
    insert(datetime(2030, 11, 3, tzinfo=UTC))
    assert partitions.ensure_months(books, date(2030, 11, 5))[0] == "books_203011"


@pytest.fixture
def files(db: None) -> str:
    return "jedi_dataset_contents"


def landed_in(task_id: int) -> str:
    row = File.objects.create(task_id=task_id, dataset_id=1, lfn="f", type="input", status="ready")
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM jedi_dataset_contents WHERE fileid = %s", [row.id])
        return str(cursor.fetchone()[0])


def test_the_range_of_a_task_and_the_next_one_are_made_ahead(files):
    low = 400 * partitions.RANGE
    assert landed_in(low + 1) == f"{files}_default"
    File.objects.filter(task_id=low + 1).delete()
    assert partitions.ensure_numbers(files, low + 5) == [f"{files}_p400", f"{files}_p401"]
    assert partitions.ensure_numbers(files, low + partitions.RANGE - 1) == []
    assert partitions.ensure_numbers(files, low + partitions.RANGE) == [f"{files}_p402"]
    edges = (low - 1, low, low + partitions.RANGE - 1, low + partitions.RANGE)
    assert [landed_in(task) for task in edges] == [
        f"{files}_default",
        f"{files}_p400",
        f"{files}_p400",
        f"{files}_p401",
    ]


def test_a_new_range_leaves_room_in_its_pages_and_has_the_indexes_of_the_table(files):
    partitions.ensure_numbers(files, 400 * partitions.RANGE)
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [f"{files}_p400"])
        options = dict(option.split("=") for option in cursor.fetchone()[0])
        cursor.execute(
            """SELECT (SELECT count(*) FROM pg_index WHERE indrelid = %s::regclass),
                      (SELECT count(*) FROM pg_index WHERE indrelid = %s::regclass)""",
            [f"{files}_p400", files],
        )
        of_range, of_table = cursor.fetchone()
    assert int(options["fillfactor"]) < 80
    assert of_range == of_table >= 3


def test_an_installation_has_the_partitions_of_today_from_the_start():
    month = f"{timezone.now():%Y%m}"
    for monthly in partitions.MONTHLY:
        assert f"{monthly.table}_{month}" in parts(monthly.table)
        assert f"{monthly.table}_default" in parts(monthly.table)
    for numbered in partitions.NUMBERED:
        found = parts(numbered.table)
        assert f"{numbered.table}_p10" in found and f"{numbered.table}_default" in found


def test_housekeeping_makes_what_is_missing_and_says_so():
    today = timezone.now().date()
    ahead = partitions.month_start(today, partitions.MONTHS_AHEAD)
    old = partitions.month_start(today, -10)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE jobs_statuslog_{ahead:%Y%m}")
        cursor.execute(
            f"CREATE TABLE jobs_statuslog_{old:%Y%m} PARTITION OF jobs_statuslog "
            f"FOR VALUES FROM ('{old}') TO ('{partitions.month_start(old, 1)}')"
        )
    done = housekeeping.keep_partitions()
    assert done.items == 2
    assert done.note == f"jobs_statuslog_{ahead:%Y%m}, jobs_statuslog_{old:%Y%m}"
    assert housekeeping.keep_partitions().items == 0


def test_archived_jobs_are_kept_for_ever():
    assert [m.keep_months for m in partitions.MONTHLY if m.table == "jobs_archive"] == [None]
