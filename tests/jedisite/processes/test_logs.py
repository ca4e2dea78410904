"""An error in the log is short, whatever libraries are there, and shows no values of variables."""

from __future__ import annotations

import json
import logging

import pytest
import structlog

from jedisite import settings
from jedisite.processes.logs import MOST_LINES, sentence_of

SECRET = "hunter2"


def fail(depth: int, password: str) -> None:
    if depth:
        fail_too(depth - 1, password)
    raise ValueError("\n".join(f"line {n}" for n in range(60)))


def fail_too(depth: int, password: str) -> None:
    """Not the same function, or the traceback would say "repeated" instead of growing."""
    try:
        fail(depth, password)
    except ValueError as exc:
        raise RuntimeError("one more") from exc


@pytest.mark.parametrize("renderer", ["console", "json"])
@pytest.mark.parametrize("logger", ["ours", "django"])
def test_an_unexpected_error_is_at_most_forty_lines_in_the_log(renderer: str, logger: str) -> None:
    options = dict(settings.LOGGING["formatters"]["structured"])
    factory = options.pop("()")
    if renderer == "json":
        options["processor"] = structlog.processors.JSONRenderer()
    formatter, lines = factory(**options), []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(formatter.format(record))

    handler, target = Kept(), logging.getLogger("tests.short")
    target.addHandler(handler)
    try:
        fail(30, SECRET)
    except (ValueError, RuntimeError):
        if logger == "ours":
            structlog.get_logger("tests.short").exception("it.failed", task=7)
        else:
            target.exception("it failed")
    finally:
        target.removeHandler(handler)
    (text,) = lines
    if renderer == "json":
        assert "\n" not in text
        text = json.loads(text)["exception"]
    else:
        text = text.split("\n", 1)[1]
    assert 10 < len(text.rstrip("\n").split("\n")) <= MOST_LINES
    assert "Traceback" in text and text.rstrip().endswith("RuntimeError: one more") and SECRET not in text


def test_an_error_is_one_line_that_the_database_takes() -> None:
    assert sentence_of(ValueError("a\x00b\n  c")) == "ValueError: a�b c"
    assert len(sentence_of(ValueError("x" * 5000))) == 1000
