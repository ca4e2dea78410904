"""Runs agents by hand."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from jedisite.agents import passes, registry
from jedisite.management.command_line import Suggesting
from jedisite.models import Agent, AgentPass
from jedisite.vocabulary.words import plural


class Command(Suggesting):
    help = "Run one pass of an agent, or list the agents."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", nargs="?", help="the agent; without a name all are listed")
        parser.add_argument("--once", action="store_true", help="run one pass now, even if it is not due")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["name"]:
            self._list()
            return
        if not options["once"]:
            raise CommandError("--once is missing: agents run continuously only under cluster and ticker")
        try:
            items = passes.run_agent(options["name"], even_if_paused=True)
        except registry.UnknownAgentError as exc:
            raise CommandError(str(exc)) from exc
        if items is None:
            raise CommandError(
                f"{options['name']} is running elsewhere: {Agent.objects.get(pk=options['name']).lease_owner}"
            )
        error = Agent.objects.get(pk=options["name"]).last_error
        if error:
            raise CommandError(error)
        last = AgentPass.objects.filter(agent=options["name"]).order_by("-id").first()
        self.stdout.write(f"{plural(items, 'item')}{f' ({last.note})' if last and last.note and items else ''}")

    def _list(self) -> None:
        for row in Agent.objects.all():
            state = "paused" if row.paused else f"every {row.period_s:g} s"
            self.stdout.write(f"{row.name:16} {state:14} {row.title}")
