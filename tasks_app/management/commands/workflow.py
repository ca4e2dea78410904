"""`manage.py workflow`: look at a definition before anything runs, and write it for DAGMan."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.params.faults import ParamErrors
from tasks_app.workflows.rules.dagman_file import dag_of, written
from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.document_fields import json_schema
from tasks_app.workflows.rules.graph_drawing import drawing, table
from tasks_app.workflows.rules.implied_graph import Graph


class Command(Suggesting):
    help = "Check the definition of a workflow, show its graph, or print the JSON Schema of definitions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        check = acts.add_parser("check", help="show every fault of a definition, or its graph")
        check.add_argument("file", metavar="FILE", help="the definition: JSON or the compact text")
        check.add_argument("--dagman", metavar="OUT", help="write the graph as a DAGMan file")
        acts.add_parser("schema", help="print the JSON Schema of definitions")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["act"] == "schema":
            self.stdout.write(json.dumps(json_schema(), indent=2))
            return
        definition, graph = self.read(options["file"])
        say = self.stdout.write
        for line in (*table(graph), "", *drawing(graph), ""):
            say(line)
        sizes = plural(len(graph.nodes), "package"), plural(len(graph.edges), "dependency", "dependencies")
        say(f"{definition.name}: {', '.join(sizes)}, {max(graph.depths(), default=0) + 1} deep")
        if options["dagman"]:
            Path(options["dagman"]).write_text(written(dag_of(definition, graph)))

    def read(self, name: str) -> tuple[Definition, Graph]:
        try:
            return read_definition(Path(name).read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{name} cannot be read: {error}") from error
        except ParamErrors as errors:
            raise CommandError("\n".join(f"{e.field or name}: {e.message}" for e in errors.errors)) from errors
