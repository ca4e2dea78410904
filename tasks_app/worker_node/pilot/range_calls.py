"""PanDA's calls on ranges of events, as our pilot makes them: with the fence and the secret of its job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tasks_app.worker_node.pilot.job import Input, Job, adler32_of, is_plain_name
from tasks_app.worker_node.pilot.latch import Latch
from tasks_app.worker_node.pilot.range_book import Range
from tasks_app.worker_node.pilot.range_words import Failed
from tasks_app.worker_node.pilot.site_client import Client, RefusedError
from tasks_app.worker_node.pilot.stageout import Stored

log = logging.getLogger(__name__)

ACQUIRE = "/api/v1/event/acquire_event_ranges"
UPDATE = "/api/v1/event/update_event_ranges"
FAILURES, ZIPS = 0, 1
"""Versions of a report: ranges that failed or were begun, and finished ones with the files that hold their outputs."""
OF_FILES = ("PFN", "fsize", "checksum")
"""What the server says of the file of a range to jumbo jobs: payloads need not know."""
PREMERGED = 1000
"""PanDA's convention for the paths of such files."""


class RangeCalls:
    """Calls for one job. `obey` is given what the server wants done with it.

    All raise UnreachableError, RefusedError, InterruptedCallError.
    """

    def __init__(self, client: Client, job: Job, patience_s: float, obey: Callable[[str], None]) -> None:
        self._client, self._job, self._patience_s, self._obey = client, job, patience_s, obey

    def acquire(self, count: int, until: Sequence[Latch]) -> list[Range]:
        """Some ranges; none when there are no more."""
        body = self._body(n_ranges=count)
        answer = self._client.post(ACQUIRE, body, patience_s=self._patience_s, until=until)
        if not answer.success:
            raise RefusedError(200, f"no ranges of events: {answer.message}")
        given = answer.data.get("eventRanges") if isinstance(answer.data, dict) else answer.data
        found = [_range(one) for one in given or () if isinstance(one, dict) and one.get("eventRangeID")]
        log.info("ranges.got asked=%d got=%d", count, len(found))
        return found

    def tell_failed(self, failures: Sequence[Failed], patience_s: float | None, until: Sequence[Latch]) -> None:
        """Ranges that could not be processed."""
        said = [
            {
                "eventRangeID": one.range_id,
                "eventStatus": "fatal" if one.fatal else "failed",
                "errorCode": int(one.code),
                "errorDiag": one.text,
            }
            for one in failures
        ]
        self._tell(said, FAILURES, patience_s, until)

    def tell_begun(self, range_ids: Sequence[str], until: Sequence[Latch]) -> None:
        """Ranges with which the payload has begun: of those that nobody reports they alone lose an attempt."""
        said = [{"eventRangeID": one, "eventStatus": "running"} for one in range_ids]
        self._tell(said, FAILURES, None, until)

    def tell_stored(
        self, stored: Stored, number: int, range_ids: Sequence[str], patience_s: float | None, until: Sequence[Latch]
    ) -> list[str]:
        """A zip file that lies in the storage of this number, and the ranges whose outputs it holds. Returns those that the
        server has taken."""
        zip_file = {
            "lfn": stored.lfn,
            "objstoreID": number,
            "fsize": stored.copied.size,
            "adler32": stored.copied.hex,
            "numEvents": len(range_ids),
            "pathConvention": PREMERGED,
        }
        items = [{"eventRangeID": one, "eventStatus": "finished"} for one in range_ids]
        answers = self._tell([{"zipFile": zip_file, "eventRanges": items}], ZIPS, patience_s, until)
        return [one for one, answer in zip(range_ids, answers, strict=False) if answer is True]

    def _tell(
        self, said: Sequence[Mapping[str, object]], version: int, patience_s: float | None, until: Sequence[Latch]
    ) -> list[Any]:
        body = self._body(event_ranges=list(said), version=version)
        wait_s = self._patience_s if patience_s is None else patience_s
        answer = self._client.post(UPDATE, body, patience_s=wait_s, until=until)
        data = answer.data if isinstance(answer.data, dict) else {}
        commands = data.get("Command") or data.get("Commands") or {}
        if isinstance(commands, dict) and (command := commands.get(str(self._job.id))):
            self._obey(str(command))
        if not answer.success:
            raise RefusedError(200, f"the report on ranges was refused: {answer.message}")
        returns = data.get("Returns")
        return returns if isinstance(returns, list) else []

    def _body(self, **more: object) -> dict[str, object]:
        return {"job_id": self._job.id, "fence": self._job.fence, "job_secret": self._job.secret, **more}


def _range(said: Mapping[str, Any]) -> Range:
    told = {name: value for name, value in said.items() if name not in OF_FILES}
    try:
        events = max(0, int(said["lastEvent"]) - int(said["startEvent"]) + 1)
    except (KeyError, TypeError, ValueError):
        events = 0
    return Range(str(said["eventRangeID"]), events, told, _input(said))


def _input(said: Mapping[str, Any]) -> Input | None:
    """The file of a range that is no input of the job, as jumbo jobs are told. Without a plain name there is none."""
    lfn, url, size, checksum = str(said.get("LFN") or ""), said.get("PFN"), said.get("fsize"), said.get("checksum")
    if "PFN" not in said or not is_plain_name(lfn):
        return None
    return Input(lfn, str(url or ""), size if isinstance(size, int) else None, adler32_of(str(checksum or "")))
