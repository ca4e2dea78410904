"""Which agent brings tasks of a state on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tasks_app.domain.states import TaskStatus

T = TaskStatus
AGENT_OF: Final[Mapping[str, str]] = {
    T.REGISTERED: "refiner",
    T.REREFINE: "refiner",
    T.DEFINED: "feeder",
    T.STAGING: "data_carousel",
    T.ASSIGNING: "task_broker",
    T.READY: "job_generator",
    T.RUNNING: "job_generator",
    T.SCOUTING: "job_generator",
    T.PENDING: "pending",
    T.PREPARED: "post_processor",
    T.PASSED: "post_processor",
    T.FINISHING: "post_processor",
    T.TOABORT: "commando",
    T.ABORTING: "commando",
    T.TORETRY: "commando",
    T.TOINCEXEC: "commando",
    T.TOREASSIGN: "commando",
}
