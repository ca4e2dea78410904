"""What pilots say of jobs that were given secrets is stored without them, whichever way it comes."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url
from tasks_app.dispatch.bulk_reports import update_jobs
from tasks_app.dispatch.reports import Report, update_job
from tasks_app.models import Job, JobFile, JobMetadata
from tasks_app.submission.user_secrets import set_secret
from tests.flow.driving import USER, agents_turn, parameters, settle, submit
from tests.flow.pilot import Pilot, report

WORDS = "KeyError: hunter2-hunter2 and p-of-ada"
ERRORS = {
    "pilot_error_code": 1305,
    "pilot_error_diag": f"Failed: {WORDS}",
    "exe_error_code": 3,
    "exe_error_diag": WORDS,
}
METADATA = {"said": ["hunter2-hunter2", 7, {"p-of-ada": None}]}


def one_by_one(final: Report) -> None:
    update_job(final)


def in_bulk(final: Report) -> None:
    assert update_jobs([final]) == ["NULL"]


@pytest.fixture
def job(books: None) -> Callable[[bool], dict[str, Any]]:
    """A job of ada's that runs, with her secrets or without; somebody else has others."""
    set_secret(USER, "words", json.dumps({"password": "hunter2-hunter2", "pin": "1234"}))
    set_secret(USER, "other", "p-of-ada\n")
    set_secret("eve", "words", "KeyError")

    def make(with_secrets: bool) -> dict[str, Any]:
        submit(parameters("lab.t", noInput=True, nEvents=1, nEventsPerJob=1, maxAttempt=1, useSecrets=with_secrets))
        settle()
        pilot = Pilot()
        (found,) = pilot.fetch()
        pilot.start(found)
        return found

    return make


@pytest.mark.parametrize("tell", [one_by_one, in_bulk])
def test_errors_and_metadata_are_stored_without_secrets(job: Callable[[bool], dict[str, Any]], tell: Any) -> None:
    given = job(True)
    tell(report(given, "failed", errors=ERRORS, metadata=METADATA))
    found = Job.objects.get(pk=given["PandaID"])
    assert (found.pilot_error_diag, found.exe_error_diag) == ("Failed: KeyError: *** and ***", "KeyError: *** and ***")
    assert (found.pilot_error_code, found.exe_error_code) == (1305, 3)
    assert JobMetadata.objects.get(pk=given["PandaID"]).metadata == {"said": ["***", 7, {"***": None}]}


@pytest.mark.parametrize("tell", [one_by_one, in_bulk])
def test_what_is_said_of_jobs_without_secrets_is_stored_as_it_is(
    job: Callable[[bool], dict[str, Any]], tell: Any
) -> None:
    given = job(False)
    tell(report(given, "failed", errors=ERRORS, metadata=METADATA))
    assert Job.objects.get(pk=given["PandaID"]).exe_error_diag == WORDS
    assert JobMetadata.objects.get(pk=given["PandaID"]).metadata == METADATA


def test_last_words_in_a_log_that_nobody_masked_are(
    job: Callable[[bool], dict[str, Any]], tmp_path: Path, settings: Any
) -> None:
    settings.JEDI_STORAGE = tmp_path / "storage"
    given = job(True)
    log = JobFile.objects.get(job_id=given["PandaID"], type="log")
    place = storage_path(settings.JEDI_STORAGE.resolve(), log.scope or "", log.lfn)
    place.parent.mkdir(parents=True)
    with tarfile.open(place, "w:gz") as tar:
        info = tarfile.TarInfo("tarball_1/payload.stderr")
        info.size = len(WORDS)
        tar.addfile(info, io.BytesIO(WORDS.encode()))
    stored = {"guid": "", "fsize": place.stat().st_size, "adler32": "0badcafe", "surl": file_url(place)}
    silent = {"pilot_error_code": 1305, "pilot_error_diag": "Failed to execute payload"}
    update_job(report(given, "failed", errors=silent, outputs={log.lfn: stored}))
    agents_turn()
    assert Job.objects.get(pk=given["PandaID"]).exe_error_diag == "KeyError: *** and ***"
