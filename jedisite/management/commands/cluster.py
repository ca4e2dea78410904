"""`manage.py cluster`: django-q2's cluster, watched.

A worker of django-q2 that is killed while it waits for work can take the lock of the workers' queue with it: the cluster
goes on living and never works again. Here a cluster is started anew when passes are overdue and none of its workers has
shown a sign of life.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import close_old_connections
from django.db.utils import DatabaseError, InterfaceError

from jedisite.agents import passes, troubles, turns
from jedisite.management.command_line import Suggesting
from jedisite.processes.supervisor import Event, Process, Supervisor

log = structlog.get_logger(__name__)
STUCK_AFTER_S = 15.0
GRACE_S = 10.0
"""Seconds that passes have to end in when the cluster is asked to end: fewer than whoever asks waits for the cluster."""
START_S = 120.0
"""A cluster that has shown no sign yet may take so long: on a machine with much to do its start alone takes long."""


class Command(Suggesting):
    help = "Run a django-q2 cluster of agents, and restart it when it is stuck."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--stuck-after",
            type=float,
            default=STUCK_AFTER_S,
            metavar="S",
            help="seconds without a heartbeat after which it is restarted (%(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stuck_after = options["stuck_after"]
        self.lost: list[turns.Lost] = []
        with tempfile.TemporaryDirectory(prefix="jedisite-cluster-") as folder:
            self.pulse = Path(folder) / "pulse"
            environment = {**os.environ, turns.PULSE: str(self.pulse)}
            manage = str(settings.BASE_DIR / "manage.py")
            with Supervisor(self._say, grace_s=GRACE_S) as self.supervisor:
                argv = (sys.executable, manage, "qcluster", "--skip-checks")  # this process has made them
                self.supervisor.start(
                    # When asked to end, it waits for passes that run; nobody would be left to end these waits.
                    Process("django-q2", argv, environment, None, settings.BASE_DIR, dies_of=signal.SIGKILL)
                )
                self.started = time.time()
                self.supervisor.run(self._look)

    def _say(self, event: Event) -> None:
        if event.what == "started":
            self.started = time.time()
        log.info("cluster.child", what=event.what, detail=event.detail)

    def _look(self) -> None:
        """About once a second: end workers whose turn is over, and a cluster that does nothing although there is work.

        django-q2 starts another worker, the supervisor another cluster.
        """
        self._look_at_turns()
        sign = self._last_sign()
        patience = self.stuck_after if sign > self.started else max(START_S, self.stuck_after)
        if time.time() - max(sign, self.started) < patience:
            return
        try:
            stuck = passes.overdue(self.stuck_after)
        except (DatabaseError, InterfaceError):
            close_old_connections()
            return
        pid = self.supervisor.pids().get("django-q2")
        if stuck and pid:
            log.warning("cluster.stuck", seconds=round(time.time() - max(sign, self.started)))
            os.killpg(pid, signal.SIGKILL)

    def _look_at_turns(self) -> None:
        """Name the tasks whose turns ended with their process; without the database that is done at the next look."""
        self.lost += turns.end_overlong(self.pulse)
        try:
            while self.lost:
                one = self.lost[0]
                troubles.note(one.agent, "task", one.task_id, one.error, one.task_id)
                log.error("cluster.turn_ended", agent=one.agent, task=one.task_id, error=one.error)
                self.lost.pop(0)
        except (DatabaseError, InterfaceError):
            close_old_connections()

    def _last_sign(self) -> float:
        try:
            return self.pulse.stat().st_mtime
        except FileNotFoundError:
            return 0.0
