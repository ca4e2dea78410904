"""The secrets that a job was given are masked in its final report, before that is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tasks_app.submission.secret_masking import needles_by_job
from tasks_app.worker_node.pilot.masking import mask_text

if TYPE_CHECKING:
    from tasks_app.dispatch.reports import Report  # which masks its reports here


def masked_reports(reports: Mapping[int, Report]) -> dict[int, Report]:
    """Those of the final reports, by any number, in which something had to be masked: one statement for all of them."""
    telling = {n: one for n, one in reports.items() if one.metadata is not None or any(_texts(one).values())}
    needles = needles_by_job({one.job_id for one in telling.values()})
    return {n: _masked(one, needles[one.job_id]) for n, one in telling.items() if one.job_id in needles}


def _texts(report: Report) -> dict[str, str]:
    return {key: value for key, value in report.errors.items() if isinstance(value, str)}


def _masked(report: Report, needles: list[bytes]) -> Report:
    texts = {key: mask_text(text, needles) for key, text in _texts(report).items()}
    return replace(report, errors={**report.errors, **texts}, metadata=_value(report.metadata, needles))


def _value(value: Any, needles: list[bytes]) -> Any:
    """A value of JSON. What comes as a request is not deeper than Python's calls may be."""
    if isinstance(value, str):
        return mask_text(value, needles)
    if isinstance(value, list):
        return [_value(one, needles) for one in value]
    if isinstance(value, dict):
        return {mask_text(key, needles): _value(one, needles) for key, one in value.items()}
    return value
