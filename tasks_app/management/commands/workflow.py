"""`manage.py workflow`: look at a definition before anything runs, and write it for DAGMan."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from jedisite.identity import user_names
from jedisite.identity.callers import caller_of_user
from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.models import Workflow
from tasks_app.params.faults import ParamErrors
from tasks_app.submission.submitting import SubmissionRefusedError
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.dagman_file import dag_of, written
from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.document_fields import json_schema
from tasks_app.workflows.rules.graph_drawing import drawing, table
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.workflow_document import as_document
from tasks_app.workflows.submitting_workflows import submit_workflow


class Command(Suggesting):
    help = "Check the definition of a workflow, run it, show how far it is, or print the JSON Schema of definitions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        check = acts.add_parser("check", help="show every fault of a definition, or its graph")
        check.add_argument("file", metavar="FILE", help="the definition: JSON or the compact text")
        check.add_argument("--dagman", metavar="OUT", help="write the graph as a DAGMan file")
        submit = acts.add_parser("submit", help="run a definition; prints the number of the workflow")
        submit.add_argument("file", metavar="FILE", help="the definition: JSON or the compact text")
        submit.add_argument("--user", required=True, help="the owner of the workflow, a user of this site")
        show = acts.add_parser("show", help="show the packages of a workflow with their states")
        show.add_argument("workflow", type=int, metavar="NUMBER")
        acts.add_parser("schema", help="print the JSON Schema of definitions")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["act"] == "schema":
            self.stdout.write(json.dumps(json_schema(), indent=2))
            return
        say = self.stdout.write
        if options["act"] == "submit":
            say(str(self.submit(options["file"], options["user"]).pk))
            return
        if options["act"] == "show":
            self.show(options["workflow"])
            return
        definition, graph = self.read(options["file"])
        for line in (*table(graph), "", *drawing(graph), ""):
            say(line)
        sizes = plural(len(graph.nodes), "package"), plural(len(graph.edges), "dependency", "dependencies")
        say(f"{definition.name}: {', '.join(sizes)}, {max(graph.depths(), default=0) + 1} deep")
        if options["dagman"]:
            Path(options["dagman"]).write_text(written(dag_of(definition, graph)))

    def submit(self, name: str, user_name: str) -> Workflow:
        user = User.objects.filter(username=user_name).first()
        if user is None:
            raise CommandError(f"there is no user {user_name}.{user_names.meant(user_name)}; nothing was submitted")
        definition, _ = self.read(name)
        try:
            return submit_workflow(as_document(definition), caller_of_user(user))
        except ParamErrors as errors:
            raise CommandError("\n".join(f"{e.field}: {e.message}" for e in errors.errors)) from errors
        except SubmissionRefusedError as error:
            raise CommandError(str(error)) from error

    def show(self, number: int) -> None:
        workflow = Workflow.objects.filter(pk=number).first()
        if workflow is None:
            raise CommandError(f"There is no workflow {number}.")
        facts = package_facts(workflow)
        for one in facts:
            why = ", ".join(f"{reason} ({times})" for reason, times in one.failures.items())
            self.stdout.write(f"{one.path}  {one.status:12} {one.software}  {why}".rstrip())
        counts = Counter(one.status.value for one in facts)
        said = ", ".join(f"{times} {status}" for status, times in sorted(counts.items()))
        self.stdout.write(f"{workflow.name} of {workflow.owner}: {said}")

    def read(self, name: str) -> tuple[Definition, Graph]:
        try:
            return read_definition(Path(name).read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{name} cannot be read: {error}") from error
        except ParamErrors as errors:
            raise CommandError("\n".join(f"{e.field or name}: {e.message}" for e in errors.errors)) from errors
