"""How the log is written: by level, for people or as JSON lines, from structlog and from the libraries' own loggers alike."""

from __future__ import annotations

import sys
from typing import Any

if "rich" not in sys.modules:
    # With it, structlog would write tracebacks in a way that is not used here; that took a tenth of each start.
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog
    finally:
        del sys.modules["rich"]
else:
    import structlog

from jedisite.processes.logs import short_traceback


def set_up(level: str, *, as_json: bool) -> dict[str, Any]:
    """Configure structlog; returns Django's LOGGING, which has the libraries' lines look the same."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(short_traceback),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    for_people = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processor": structlog.processors.JSONRenderer() if as_json else for_people,
            }
        },
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {"django_q": {"level": "WARNING"}, "django-q": {"level": "WARNING"}},
    }
