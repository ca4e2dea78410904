"""A failed job is explained by the last line that its payload wrote, also when the pilot kept it to itself."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from tasks_app.ddm import small_files
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url
from tasks_app.domain.job_errors import ALL_FIELDS, ERRORS_OF_J, main_error
from tasks_app.models import Job, JobFile
from tests.flow.driving import agents_turn, parameters, settle, submit
from tests.flow.pilot import Pilot, report, update_job

SILENT = {"pilot_error_code": 1305, "pilot_error_diag": "Failed to execute payload", "trans_exit_code": "3"}


def failed(errors: dict[str, Any], stderr: bytes, root: Path) -> Job:
    """A job whose pilot reported these errors and stored a log with this stderr; the adder has booked it."""
    pilot = Pilot()
    (job,) = pilot.fetch()
    pilot.start(job)
    log = JobFile.objects.get(job_id=job["PandaID"], type="log")
    place = storage_path(root.resolve(), log.scope or "", log.lfn)
    place.parent.mkdir(parents=True)
    with tarfile.open(place, "w:gz") as tar:
        info = tarfile.TarInfo("tarball_1/payload.stderr")
        info.size = len(stderr)
        tar.addfile(info, io.BytesIO(stderr))
    stored = {"guid": "", "fsize": place.stat().st_size, "adler32": "0badcafe", "surl": file_url(place)}
    update_job(report(job, "failed", errors=errors, outputs={log.lfn: stored}))
    agents_turn()
    return Job.objects.get(pk=job["PandaID"])


def test_the_last_line_of_stderr_explains_a_failure(
    books: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    settings.JEDI_STORAGE = tmp_path / "storage"
    submit(parameters("lab.t", noInput=True, nEvents=3, nEventsPerJob=1, maxAttempt=1))
    settle()
    told = failed(SILENT, b"Traceback:\nKeyError: '<b>calibration'\n\n", settings.JEDI_STORAGE)
    assert (told.status, told.exe_error_diag) == ("failed", "KeyError: '<b>calibration'")
    client.force_login(User.objects.create_user("ada"))
    assert "KeyError: &#x27;&lt;b&gt;calibration" in client.get(f"/jobs/{told.id}/").content.decode()
    spoken = failed(SILENT | {"exe_error_diag": "the pilot's own words"}, b"other words\n", settings.JEDI_STORAGE)
    assert spoken.exe_error_diag == "the pilot's own words"
    monkeypatch.setattr(small_files, "PACKED_LIMIT", 10)
    assert failed(SILENT, b"not read\n", settings.JEDI_STORAGE).exe_error_diag in (None, "")


def test_a_missing_output_is_named_as_the_user_did_where_the_payload_says_so(
    books: None, tmp_path: Path, settings: Any, client: Client
) -> None:
    settings.JEDI_STORAGE = tmp_path / "storage"
    submit(parameters("lab.t", noInput=True, nEvents=2, nEventsPerJob=1, maxAttempt=1))
    settle()
    missing = {
        "pilot_error_code": 1165,
        "pilot_error_diag": "Local output file is missing: /job/PanDA_Pilot-10/x._000001.o.txt",
    }
    words = "The command wrote no o.txt, which was to become x._000001.o.txt."
    told = failed(missing, f"warning: old\n{words}\n".encode(), settings.JEDI_STORAGE)
    values = {name: getattr(told, name) for name in ALL_FIELDS}
    assert (main := main_error(values)) and (main.key, main.detail) == ("pilot:1165", words)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT e.code, e.diag FROM jobs j, LATERAL {ERRORS_OF_J} e WHERE j.pandaid = %s",  # noqa: S608 - a constant
            [told.id],
        )
        assert ("1165", words) in cursor.fetchall()
    client.force_login(User.objects.create_user("ada"))
    assert words in client.get(f"/jobs/{told.id}/").content.decode()
    other = failed(missing, b"warning: old\n", settings.JEDI_STORAGE)
    assert (other.exe_error_diag or "") == "" and "Local output" in (other.pilot_error_diag or "")


def test_a_log_that_cannot_be_read_keeps_no_report_from_being_booked(
    books: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.JEDI_STORAGE = tmp_path / "storage"
    submit(parameters("lab.t", noInput=True, nEvents=1, nEventsPerJob=1, maxAttempt=1))
    settle()

    def broken(*_: object, **__: object) -> None:
        raise IndexError("a fault of the reader")

    monkeypatch.setattr(small_files, "read_log", broken)
    assert failed(SILENT, b"not read\n", settings.JEDI_STORAGE).status == "failed"
