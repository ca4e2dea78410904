"""What mails on failures of packages say."""

from __future__ import annotations

import pytest

from tasks_app.workflows.rules.failure_mail import MOST_NAMED, Failing, FailingPackage, mail_of
from tasks_app.workflows.rules.package_states import PackageStatus

LOOPING = Failing("looping", "It wrote nothing.", "FARM_1", "n5", 7)


def failing(number: int, status: PackageStatus = PackageStatus.FAILED, times: int = 1) -> FailingPackage:
    return FailingPackage(f"001/{number:03d}/001", "reco", status, 4, [LOOPING] * times)


def test_five_hundred_packages_are_one_mail_that_names_the_first_ones() -> None:
    mail = mail_of("reco001 (3)", [failing(number) for number in range(1, 501)])
    lines = mail.text.splitlines()
    assert mail.what == "500 packages failed"
    assert lines[0] == "500 failures of 500 packages of workflow reco001 (3): looping (500)."
    assert len(lines) == 4 + MOST_NAMED and lines[-1] == "and 480 other packages"


def test_those_that_wait_for_somebody_come_first() -> None:
    mail = mail_of("reco001 (3)", [failing(1, PackageStatus.SCHEDULED, 2), failing(2)])
    _, waits, _, first, second = mail.text.splitlines()
    assert waits == "1 of them waits until somebody restarts or drops it."
    said = (
        "001/002/001 reco: 1 failure, job 7 at FARM_1 on n5, looping: It wrote nothing. It is not restarted by itself."
    )
    assert first == said
    assert second.startswith("001/001/001 reco: 2 failures, the last: job 7 ") and second.endswith("It is restarted.")


@pytest.mark.parametrize(
    ("status", "after"),
    [
        (PackageStatus.SUCCESSFUL, "It has succeeded since."),
        (PackageStatus.CANCELED, "It is canceled."),
        (PackageStatus.HELD, "It is on hold."),
        (PackageStatus.LAUNCHED, "It is restarted."),
    ],
)
def test_what_comes_of_a_package(status: PackageStatus, after: str) -> None:
    mail = mail_of("r (3)", [failing(1, status)])
    assert mail.text.endswith(after) and "All of them are restarted or have ended." in mail.text
