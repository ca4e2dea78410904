"""Examples in the schema of the API (OpenAPI), made from what the serialisers say of each field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jedisite.web.openapi import METHODS, RESOURCES

JSON = "application/json"
VALUES: dict[str, Any] = {
    "id": 10000042,
    "task_id": 10000042,
    "task": 10000042,
    "parent_id": 10000042,
    "req_id": 5,
    "job_id": 6000000017,
    "old_job_id": 6000000017,
    "new_job_id": 6000000023,
    "origin_job_id": 6000000017,
    "dataset_id": 311,
    "position": 8041,
    "name": "user.ada.analysis",
    "user": "ada",
    "owner": "ada",
    "by": "ada",
    "vo": "lab",
    "status": "running",
    "old_status": "ready",
    "task_type": "anal",
    "prod_source_label": "user",
    "processing_type": "test",
    "gshare": "User",
    "share": "User",
    "queue": "SITE_A",
    "site": "SITE_A",
    "site_name": "SITE_A",
    "nucleus": "SITE_A",
    "username": "ada",
    "lfn": "user.ada.000007.out.root",
    "scope": "user.ada",
    "type": "output",
    "dataset": "user.ada.out",
    "size": 1048576,
    "checksum": "ad:5c2f01a9",
    "guid": "0f2b5e0a-6d1e-4a52-9f0f-1d7f1f0d8a11",
    "surl": "file:///data/user.ada.000007.out.root",
    "error_dialog": "",
    "sentence": "2 of 14 sites may get jobs.",
    "reason": "enough events",
    "comment": "enough events",
    "numbers": "1,4-7",
    "percent": 40,
    "progress": 40,
    "total": 10,
    "finished": 4,
    "failed": 1,
    "working": 2,
    "waiting": 3,
    "detail": "",
    "rule": "type",
    "field": "nFilesPerJob",
    "split_rule": {"nFilesPerJob": 5},
    "attributes": {"ramCount": 3000},
    "current_priority": 1000,
    "task_priority": 1000,
    "priority": 1000,
    "core_count": 1,
    "max_memory_mb": 4000,
    "days": 30,
    "jobs": {"finished": 4, "running": 2},
    "done": {"priority": "the priority is 1000, also of 3 queued jobs"},
    "chosen": [["SITE_A", 1.5, {"queued": 0.8}]],
    "skipped": [["SITE_B", "low_memory", "needs 4000 MB, gives 2000 MB", [4000, 2000]]],
    "reasons": {"low_memory": ["SITE_B"]},
    "prefix": "jedi_Zk3v0aQ",
    "command": "finish",
    "kind": "kick",
    "agent": "feeder",
    "files": ["user.ada:user.ada.000007.out.root"],
    "changes": ["needs.memory_mb=2000"],
    "roles": ["user"],
    "rights": ["read", "submit"],
    "WorkflowRow.name": "reco001",
    "Workflow.name": "reco001",
    "Agent.name": "feeder",
    "Queue.name": "SITE_A",
    "QueueDetail.name": "SITE_A",
    "Storage.name": "SITE_A_DATADISK",
    "Me.name": "ada",
    "Storage.type": "DATADISK",
    "Token.name": "laptop",
    "NewToken.name": "laptop",
    "MadeToken.name": "laptop",
    "Me.site": "",
    "Dataset.name": "user.ada.out",
    "WorkQueue.name": "user_analysis",
    "WorkQueue.type": "user",
    "QueueNow.name": "user_analysis",
    "QueueNow.type": "user",
    "ShareNow.name": "User",
    "ShareRow.name": "User",
    "ShareRow.state": "on target",
    "VerdictRow.kind": "job",
    "Verdict.kind": "job",
    "Message.kind": "task_status",
    "Message.id": 8041,
    "Me.groups": ["phys-higgs"],
    "JobRow.id": 6000000017,
    "Job.id": 6000000017,
    "JobFile.id": 7301,
    "File.id": 52004,
    "TaskParameter.name": "nFilesPerJob",
    "TaskParameter.type": "whole number",
    "TaskParameter.split_rule": "NF",
    "KeptMessage.id": "rucio-20261122-0001",
    "Tried.name": "user_analysis",
    "TaskQueue.queue": "user_analysis",
    "Dataset.id": 311,
    "MadeToken.token": "jedi_…",
    "Command.id": 12,
    "Token.id": 4,
    "MadeToken.id": 4,
    "Submitted.code": 3,
    "Submitted.sentence": "The task runs again.",
    "Command.answer": "",
    "old": "online",
    "new": "brokeroff",
    "after": "online",
    "QueueStatusRow.reason": "storage is down",
    "actor": "grace",
    "action": "agent.pause",
    "object_type": "agent",
    "object_id": "feeder",
    "Audit.id": 512,
    "Audit.reason": "Rucio is down",
    "Audit.details": None,
}
"""What a field of that name, or of that component and name, looks like, where the type of the field allows it."""
BODIES: dict[str, dict[str, Any]] = {
    "/api/v2/tasks/": {
        "taskName": "user.ada.hello",
        "prodSourceLabel": "user",
        "noInput": True,
        "nEvents": 4,
        "nEventsPerJob": 1,
        "log": {
            "type": "template",
            "param_type": "log",
            "dataset": "user.ada.hello.log",
            "value": "hello.${SN}.log.tgz",
        },
        "jobParameters": [
            {"type": "constant", "value": "-- 'echo hello from job ${SN} > ${OUTPUT0}'"},
            {
                "type": "template",
                "param_type": "output",
                "dataset": "user.ada.hello.txt",
                "value": "hello.${SN}.txt",
                "hidden": True,
            },
        ],
    },
    "/api/v2/tasks/{task_id}/commands/": {"command": "finish", "reason": "enough events", "soft": True},
    "/api/v2/queues/{name}/status/": {"status": "brokeroff", "reason": "storage is down"},
    "/api/v2/workflows/": {"text": "job reco001\nstage\nline\nbinary reco\nrun reco.sh > reco1\nout reco1"},
    "/api/v2/workflows/{id}/commands/": {"command": "hold", "reason": "the calibration is wrong"},
    "/api/v2/tasks/bulk-commands/": {
        "command": "pause",
        "reason": "wrong conditions data",
        "filter": {"status": "running", "user": "ada"},
        "preview": True,
    },
    "/api/v2/messages/": {
        "id": "rucio-20261122-0001",
        "kind": "kick",
        "payload": {"agent": "feeder", "task_id": 10000042},
    },
}
"""Requests whose fields depend on each other."""
_REASON = {
    "code": "low_memory",
    "title": "Too little memory",
    "advice": "Ask for less memory.",
    "tasks": 3,
    "examples": [],
}
ANSWERS: dict[str, dict[str, Any]] = {
    "/api/v2/tasks/{task_id}/params/": BODIES["/api/v2/tasks/"],
    "/api/v2/tasks/{task_id}/why/": {
        "task": 10000042,
        "status": "pending",
        "blocked_by": {
            "name": "site",
            "title": "Some site takes its jobs",
            "answer": "no",
            "code": "low_memory",
            "sentence": "0 of 14 sites: 9 too little memory, 5 offline.",
            "advice": "Ask for less memory.",
            "who_can_fix": "owner",
            "since": "2026-11-22T08:00:00Z",
        },
        "gates": [],
        "verdicts": [],
        "throttle": [],
        "history": [],
        "position": None,
    },
    "/api/v2/jobs/{job_id}/why/": {
        "job": 6000000042,
        "task": 10000042,
        "status": "activated",
        "site": "SITE_A",
        "blocked_by": None,
        "gates": [],
        "decision": {"id": 77, "at": "2026-11-22T08:00:00Z", "place": 1, "of": 3, "weight": 1.5},
        "pilots": {"silent_s": 12.0, "calls": 340, "workers": 25},
        "ahead": {"share": "User", "own_share": 12, "other_shares": 40, "urgent": 0},
    },
    "/api/v2/sites/{name}/why/": {
        "site": "SITE_A",
        "status": "online",
        "status_reason": "",
        "jobs": {"running": 12},
        "chosen_for": 5,
        "skipped_for": 3,
        "reasons": [_REASON],
        "nearly": [],
        "days": [],
        "looked_at": 500,
        "tried": 20,
        "settings": [
            {
                "column": "max_memory_mb",
                "title": "memory of a slot",
                "unit": "MB",
                "now": 2000,
                "value": 4000,
                "tasks": 3,
                "task": 10000042,
                "change": "site.SITE_A.max_memory_mb=4000",
            },
        ],
        "blocked": [],
    },
    "/api/v2/shares/{name}/why/": {
        "share": "User",
        "tasks": {"pending": 3},
        "jobs": {"running": 12},
        "waiting": 3,
        "reasons": [_REASON],
        "days": [],
    },
    "/api/v2/tasks/{task_id}/what-if/": {
        "task": 10000042,
        "decided_at": "2026-11-22T08:00:00Z",
        "broker": "generic",
        "grid_of": "2026-11-22T07:59:30Z",
        "before": {"sentence": "0 of 2 sites.", "code": "low_memory", "chosen": [], "skipped": []},
        "after": {
            "sentence": "1 of 2 sites.",
            "code": "",
            "chosen": [{"site": "SITE_A", "weight": 1.5}],
            "skipped": [],
        },
        "gained": ["SITE_A"],
        "lost": [],
        "weights": [],
        "reasons": [],
        "numbers": [],
    },
}
"""Answers that no serialiser describes: their parts differ from case to case. A test compares their names with real ones."""
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_PLAIN: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.0, "boolean": False}
_FORMATS = {
    "date-time": "2026-11-22T08:00:00Z",
    "date": "2026-11-22",
    "uri": "https://jedi.example.org/api/v2/tasks/?cursor=WyItaWQi",
    "uuid": "0f2b5e0a-6d1e-4a52-9f0f-1d7f1f0d8a11",
}
PROBLEM = {
    "type": "about:blank",
    "title": "Unprocessable Entity",
    "status": 422,
    "detail": "Some fields of the request are not valid.",
    "errors": [{"field": "page_size", "rule": "range", "message": "A page has 1 to 1000 rows."}],
}


def add_examples(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Give every operation on resources an example of what is sent and of what is answered."""
    components = result["components"]["schemas"]
    components["Problem"]["example"] = PROBLEM
    for path, operations in result["paths"].items():
        if not path.startswith(RESOURCES):
            continue
        for method, operation in operations.items():
            if method not in METHODS:
                continue
            body = operation.get("requestBody", {}).get("content", {}).get(JSON)
            if body is not None:
                body["example"] = BODIES.get(path) or example(body.get("schema", {}), components, sent=True)
            for code, answer in operation["responses"].items():
                content = answer.get("content", {})
                if code.startswith("2") and JSON in content:
                    found = ANSWERS.get(path) or example(content[JSON].get("schema", {}), components)
                    content[JSON]["example"] = found
                    _whole_lists(operation, content, found)
    return result


def _whole_lists(operation: dict[str, Any], content: dict[str, Any], page: Any) -> None:
    """What a list is when it is not sent in pages."""
    if "text/csv" not in content:
        return
    row = next(page[name] for name in ("results", "table", "cells") if name in page)[0]
    content["text/csv"] = {
        "schema": {"type": "string", "description": "all rows, with a header line"},
        "example": f"{','.join(row)}\r\n",
    }
    content["application/x-ndjson"] = {
        "schema": {"type": "string", "description": "all rows, one JSON object per line"}
    }
    operation.setdefault("parameters", []).append(
        {
            "name": "format",
            "in": "query",
            "required": False,
            "description": "json: pages; csv and ndjson: all rows, without cursor and page_size",
            "schema": {"type": "string", "enum": ["json", "csv", "ndjson"], "default": "json"},
        }
    )


def example(
    schema: Mapping[str, Any], components: Mapping[str, Any], name: str = "", owner: str = "", *, sent: bool = False
) -> Any:
    """A value that the schema of a field of that name allows. `sent`: in a request, without fields that are only read."""
    if "$ref" in schema:
        component = schema["$ref"].rpartition("/")[2]
        inner = components[component]
        return example(inner, components, name, component if "properties" in inner else owner, sent=sent)
    for choice in ("allOf", "oneOf", "anyOf"):
        if choice in schema:
            return example(schema[choice][0], components, name, owner, sent=sent)
    known = VALUES.get(f"{owner}.{name}", VALUES.get(name))
    if "enum" in schema:
        return known if known in schema["enum"] else schema["enum"][0]
    kind = schema.get("type")
    if kind is None:
        return {} if known is None else known
    if "properties" in schema:
        return {
            key: example(inner, components, key, owner, sent=sent)
            for key, inner in schema["properties"].items()
            if not (sent and inner.get("readOnly"))
        }
    if kind == "string" and schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if type(known) in _TYPES[kind] and not (kind == "array" and "$ref" in schema["items"]):
        return known
    if kind == "object":
        inner = schema.get("additionalProperties")
        return {"name": example(inner, components, sent=sent)} if isinstance(inner, Mapping) and inner else {}
    if kind == "array":
        return [example(schema.get("items", {}), components, sent=sent)]
    plain = schema.get("default", _PLAIN[kind])
    return max(plain, schema["minimum"]) if "minimum" in schema and plain is not None else plain
