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
from jedisite.identity.callers import Caller, caller_of_user
from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.models import Workflow, WorkflowPackage
from tasks_app.params.faults import ParamErrors
from tasks_app.submission.submitting import SubmissionRefusedError
from tasks_app.workflows.dropping import CannotDropError, drop_line
from tasks_app.workflows.node_acts import NODE_ACTS, act_on_node, packages_on
from tasks_app.workflows.package_acts import act_on_packages, on_node
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.dagman_file import dag_of, written
from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.definition_files import read_definition, told_by_line
from tasks_app.workflows.rules.document_fields import json_schema
from tasks_app.workflows.rules.graph_drawing import drawing, table
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.workflow_document import as_document
from tasks_app.workflows.submitting_workflows import check_submittable, submit_workflow
from tasks_app.workflows.workflow_acts import (
    COMMANDS,
    CannotActError,
    act_on_workflow,
)

DROP = "drop"


class Command(Suggesting):
    help = "Check the definition of a workflow, run it, show how far it is, or print the JSON Schema of definitions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        check = acts.add_parser("check", help="show every fault of a definition, or its graph")
        check.add_argument("file", metavar="FILE", help="the definition: JSON or the compact text")
        check.add_argument("--user", help="who would submit it: the originator and the datasets are checked as well")
        check.add_argument("--dagman", metavar="OUT", help="write the graph as a DAGMan file")
        submit = acts.add_parser("submit", help="run a definition; prints the number of the workflow")
        submit.add_argument("file", metavar="FILE", help="the definition: JSON or the compact text")
        submit.add_argument("--user", required=True, help="the owner of the workflow, a user of this site")
        show = acts.add_parser("show", help="show the packages of a workflow with their states")
        show.add_argument("workflow", type=int, metavar="NUMBER")
        show.add_argument("--node", help="only those with a job on this node")
        node = acts.add_parser("node", help="show, kill or retry the packages of all workflows with a job on a node")
        node.add_argument("node", metavar="NODE", help="the machine, as its pilots name it")
        node.add_argument("--do", choices=NODE_ACTS, help="a retry gives the jobs there up, and others follow")
        node.add_argument("--user", required=True, help="who asks, a user of this site")
        node.add_argument("--reason", default="")
        do = acts.add_parser("do", help="hold, resume, kill or retry a workflow, change its priority, or drop a line")
        do.add_argument("workflow", type=int, metavar="NUMBER")
        do.add_argument("command", choices=[*COMMANDS, DROP])
        do.add_argument("--user", required=True, help="who does it, a user of this site")
        do.add_argument("--stage", type=int, help="only to the tasks of this stage")
        do.add_argument("--line", help="only this line, such as 001/002, or this package, such as 001/002/001")
        do.add_argument("--node", help="only the packages with a job on this node; a retry gives the node up")
        do.add_argument("--priority", type=int)
        do.add_argument("--reason", default="")
        do.add_argument("--preview", action="store_true", help="only show what would be affected")
        acts.add_parser("schema", help="print the JSON Schema of definitions")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["act"] == "schema":
            self.stdout.write(json.dumps(json_schema(), indent=2))
            return
        say = self.stdout.write
        if options["act"] == "submit":
            say(str(self.submit(options["file"], options["user"]).pk))
            return
        if options["act"] == "do":
            self.do(options)
            return
        if options["act"] == "node":
            self.on_node(options["node"], options["do"], self.caller(options["user"]), options["reason"])
            return
        if options["act"] == "show":
            self.show(options["workflow"], options["node"])
            return
        definition, graph = self.read(options["file"])
        for line in (*table(graph), "", *drawing(graph), ""):
            say(line)
        sizes = plural(len(graph.nodes), "package"), plural(len(graph.edges), "dependency", "dependencies")
        say(f"{definition.name}: {', '.join(sizes)}, {max(graph.depths(), default=0) + 1} deep")
        if options["dagman"]:
            Path(options["dagman"]).write_text(written(dag_of(definition, graph)))
        self.check_submittable(options["file"], definition, options["user"], options["dagman"])

    def submit(self, name: str, user_name: str) -> Workflow:
        caller, text = self.caller(user_name), self.text_of(name)
        try:
            with told_by_line(text):
                return submit_workflow(as_document(read_definition(text)[0]), caller)
        except ParamErrors as errors:
            raise CommandError(_lines(errors, name)) from errors
        except SubmissionRefusedError as error:
            raise CommandError(str(error)) from error

    def caller(self, name: str) -> Caller:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"there is no user {name}.{user_names.meant(name)}; nothing was done")
        return caller_of_user(user)

    def do(self, options: dict[str, Any]) -> None:
        number, name, line, node = (options[one] for one in ("workflow", "command", "line", "node"))
        if (options["priority"] is not None) != (name == "priority"):
            raise CommandError("--priority belongs to priority, which needs it.")
        if sum(options[one] is not None for one in ("stage", "line", "node")) > 1:
            raise CommandError("Give one of --stage, --line and --node.")
        if name == DROP and line is None:
            raise CommandError("A line is dropped: give --line.")
        asked = {"caller": self.caller(options["user"]), "reason": options["reason"], "preview": options["preview"]}
        say = self.stdout.write
        try:
            if name == DROP:
                dropped = drop_line(number, line, **asked)
                would = options["preview"]
                say(f"{'would be ' if would else ''}canceled: {', '.join(dropped.canceled)}")
                for path, files in dropped.removed.items():
                    say(f"{path} {'would go' if would else 'goes'} on without {', '.join(files)}")
                if dropped.jobs:
                    say(f"jobs {'that would be ' if would else ''}killed: {', '.join(map(str, dropped.jobs))}")
                return
            if line or node:
                acted = act_on_packages(
                    number, name, line=line or "", node=node or "", priority=options["priority"], **asked
                )
            else:
                acted = act_on_workflow(number, name, stage=options["stage"], priority=options["priority"], **asked)
        except Workflow.DoesNotExist:
            raise CommandError(f"There is no workflow {number}.") from None
        except (CannotDropError, CannotActError, ParamErrors, SubmissionRefusedError) as error:
            raise CommandError(str(error)) from error
        if acted.begins or not (acted.tasks or acted.refused or acted.packages):  # it has no tasks yet
            rows = WorkflowPackage.objects.filter(workflow_id=number).count()
            say(f"{name}: the workflow {'begins' if acted.begins else 'never begins'}: {plural(rows, 'package')}")
            return
        say(
            f"{name}: {plural(len(acted.tasks), 'task')}{': ' if acted.tasks else ''}{', '.join(map(str, acted.tasks))}"
        )
        for what, those in (("packages", acted.packages), ("jobs", acted.jobs)):
            if those:
                say(f"{what}: {', '.join(map(str, those))}")
        for group in acted.refused:
            say(f"{group.words}: {', '.join(map(str, group.ids))}")

    def on_node(self, node: str, name: str | None, caller: Caller, reason: str) -> None:
        try:
            found = act_on_node(node, name, caller=caller, reason=reason) if name else packages_on(node, caller)
        except CannotActError as error:
            raise CommandError(str(error)) from error
        for one in found:
            paths = ", ".join(f"{fact.path} (job {fact.job_id})" for fact in one.packages)
            self.stdout.write(
                f"{one.workflow.pk} {one.workflow.name} of {one.workflow.owner}: {paths}. {one.refused}".rstrip()
            )
        packages, workflows = sum(len(one.packages) for one in found), len(found)
        self.stdout.write(f"{plural(packages, 'package')} of {plural(workflows, 'workflow')}")

    def show(self, number: int, node: str | None = None) -> None:
        workflow = Workflow.objects.filter(pk=number).first()
        if workflow is None:
            raise CommandError(f"There is no workflow {number}.")
        facts = package_facts(workflow)
        facts = facts if node is None else on_node(facts, node)
        for one in facts:
            why = ", ".join(f"{reason} ({times})" for reason, times in one.failures.items())
            self.stdout.write(f"{one.path}  {one.status:12} {one.software}  {why}".rstrip())
        counts = Counter(one.status.value for one in facts)
        said = ", ".join(f"{times} {status}" for status, times in sorted(counts.items()))
        self.stdout.write(f"{workflow.name} of {workflow.owner}: {said}")

    def read(self, name: str) -> tuple[Definition, Graph]:
        try:
            return read_definition(self.text_of(name))
        except ParamErrors as errors:
            raise CommandError(_lines(errors, name)) from errors

    def check_submittable(self, name: str, definition: Definition, user: str | None, dagman: str | None) -> None:
        """Say what keeps this site from running a definition. For another system, which `dagman` is for, that is no fault."""
        caller = self.caller(user) if user else None
        try:
            with told_by_line(self.text_of(name)):
                check_submittable(definition, caller)
        except ParamErrors as errors:
            said = f"This site cannot run it as it is:\n{_lines(errors, name)}"
            if dagman is None:
                raise CommandError(said) from errors
            self.stderr.write(said)

    def text_of(self, name: str) -> str:
        try:
            return Path(name).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{name} cannot be read: {error}") from error


def _lines(errors: ParamErrors, name: str) -> str:
    return "\n".join(f"{e.field or name}: {e.message}" for e in errors.errors)
