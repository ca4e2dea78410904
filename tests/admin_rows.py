"""Rows for every model that the admin shows."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import models
from django.utils import timezone
from django_q import models as q2

from brokerage_app import models as brokerage
from events_app.models import Event
from jedisite import models as frame
from jedisite.identity.callers import issue_token
from tasks_app import models as tasks
from tasks_app.lifecycle.task_moves import next_task_id

FIRST = 30_000_000


def _task(number: int) -> tasks.Task:
    values = {"name": f"user.ada.{number}", "status": "running", "user": "ada", "task_type": "anal", "vo": "test"}
    return tasks.Task.objects.get_or_create(id=FIRST + number, defaults=values)[0]


def _dataset(number: int) -> tasks.Dataset:
    return tasks.Dataset.objects.create(task=_task(number), name=f"data.{number}", type="input", status="ready")


def _catalogue(number: int) -> tasks.CatalogueDataset:
    return tasks.CatalogueDataset.objects.get_or_create(name=f"data.{number // 10}", defaults={"scope": "test"})[0]


def _queue(number: int) -> brokerage.Queue:
    return brokerage.Queue.objects.get_or_create(name=f"QUEUE_{number}", defaults={"site_name": "S"})[0]


def _endpoint(number: int) -> brokerage.StorageEndpoint:
    return brokerage.StorageEndpoint.objects.get_or_create(name=f"SE_{number}", defaults={"site_name": "S"})[0]


def _token(number: int) -> frame.ApiToken:
    issue_token(f"token {number}", "pilot", site="SITE_A", lifetime=timedelta(days=1))
    return frame.ApiToken.objects.latest("id")


def _fingerprint(number: int) -> tasks.ErrorFingerprint:
    values = {"example": "<b>", "category": "payload", "first_seen": NOW, "last_seen": NOW}
    return tasks.ErrorFingerprint.objects.get_or_create(
        component="exe", code=str(number), text="no such file <path>", defaults=values
    )[0]


def _alert_rule(number: int) -> tasks.AlertRule:
    return tasks.AlertRule.objects.get_or_create(name=f"nights {number}", defaults={"feed": True})[0]


def _workflow(number: int) -> tasks.Workflow:
    return tasks.Workflow.objects.create(name=f"reco{number}", owner="ada", definition={"name": "<b>"})


def _ended(number: int, success: bool) -> q2.Task:
    now = timezone.now()
    name = f"pass {number}"
    q2.Task.objects.create(
        id=f"{number:032}",
        name=name,
        func="jedisite.agents.passes.run_agent",
        started=now,
        stopped=now,
        success=success,
        result="<b>",
    )
    return (q2.Success if success else q2.Failure).objects.get(name=name)


JOB = {"status": "running", "site": "SITE_A", "user": "ada", "task_id": FIRST}
FILE = {"lfn": "file", "type": "input", "status": "ready"}
NOW = timezone.now()
MAKERS: dict[type[models.Model], Callable[[int], Any]] = {
    Group: lambda n: Group.objects.create(name=f"group {n}"),
    User: lambda n: User.objects.create_user(f"user{n}"),
    frame.Agent: lambda n: frame.Agent.objects.create(name=f"agent{n}", period_s=5, last_error="<b>"),
    frame.Trouble: lambda n: frame.Trouble.objects.create(
        agent="feeder", kind="task", subject=n, task_id=n, next_try=timezone.now(), error="ValueError: x"
    ),
    frame.AgentPass: lambda n: frame.AgentPass.objects.create(agent="feeder", duration_s=1, host="here", note=f"{n}"),
    frame.ApiToken: _token,
    frame.LoginAttempts: lambda n: frame.LoginAttempts.objects.create(
        key=f"{n:064x}", failures=n % 7, free_at=timezone.now(), expires=timezone.now() + timedelta(hours=1)
    ),
    frame.DeviceLogin: lambda n: frame.DeviceLogin.objects.create(
        user_code=f"{n:09}", digest=b"%d" % n, expires=timezone.now()
    ),
    frame.ForeignIdentity: lambda n: frame.ForeignIdentity.objects.create(
        issuer="https://iam.example", subject=f"subject {n}", user=User.objects.get_or_create(username=f"user{n}")[0]
    ),
    frame.AuditEntry: lambda n: frame.AuditEntry.objects.create(
        actor="ada", action="kill", object_type="task", object_id=str(n), details={"x": n}
    ),
    q2.Schedule: lambda n: q2.Schedule.objects.create(
        name=f"x{n}", func="jedisite.agents.passes.run_floor", args=f"'{n}'"
    ),
    q2.Success: lambda n: _ended(n, True),
    q2.Failure: lambda n: _ended(n, False),
    q2.OrmQ: lambda n: q2.OrmQ.objects.create(key="jedi", payload="spoilt", lock=NOW),
    brokerage.Queue: lambda n: brokerage.Queue.objects.create(name=f"SITE/{n}_1", site_name="S"),
    brokerage.QueueStatusLog: lambda n: brokerage.QueueStatusLog.objects.create(
        queue=f"GONE_{n}", old="online", new="offline", by="ada", reason="<b>", at=NOW
    ),
    brokerage.StorageEndpoint: lambda n: brokerage.StorageEndpoint.objects.create(name=f"SE {n}", site_name="S"),
    brokerage.StorageTrouble: lambda n: brokerage.StorageTrouble.objects.create(
        endpoint=_endpoint(n), failures=n, since=NOW, last=NOW
    ),
    brokerage.StorageFolder: lambda n: brokerage.StorageFolder.objects.create(
        endpoint=_endpoint(n), looked_at=NOW, holds_files=True, inode=n
    ),
    brokerage.ResourceType: lambda n: brokerage.ResourceType.objects.create(name=f"TYPE{n}"),
    brokerage.WorkQueue: lambda n: brokerage.WorkQueue.objects.create(
        name=f"queue{n}", type="user", vo="test", order=n
    ),
    brokerage.GdpConfig: lambda n: brokerage.GdpConfig.objects.create(
        app="jedi", component="jobbroker", key=f"MIN_WEIGHT_{n}", value="1", type="float"
    ),
    brokerage.GridSnapshot: lambda n: brokerage.GridSnapshot.objects.create(sites=n, body=b"x"),
    brokerage.SiteClassRecord: lambda n: brokerage.SiteClassRecord.objects.create(
        queue=f"QUEUE_{n}",
        site_class=n % 3 - 1,
        mean_s=60,
        upper_s=600,
        long_queued=1,
        long_mean_s=90,
        active=True,
        updated=NOW,
    ),
    brokerage.AnalysisUser: lambda n: brokerage.AnalysisUser.objects.create(
        user=f"user {n}", slots_hi=1, slots_mid=2, disk_gb=3, updated=NOW
    ),
    brokerage.TaskClassRecord: lambda n: brokerage.TaskClassRecord.objects.create(
        task_id=FIRST + n, task_class=n % 4 - 1, updated=NOW
    ),
    brokerage.VerdictCount: lambda n: brokerage.VerdictCount.objects.create(
        day="2026-01-01", kind="job", share="X", site=f"S{n}", code="low_memory", decisions=n
    ),
    brokerage.VerdictHour: lambda n: brokerage.VerdictHour.objects.create(
        hour=NOW, kind="job", share="X", site=f"S{n}", code="low_memory", decisions=n
    ),
    brokerage.VerdictMinute: lambda n: brokerage.VerdictMinute.objects.create(
        minute=NOW, kind="job", share=f"X{n}", code="low_memory", decisions=n
    ),
    brokerage.GlobalShare: lambda n: brokerage.GlobalShare.objects.create(name=f"share {n}", value=n, queue_id=n),
    brokerage.ThrottleRecord: lambda n: brokerage.ThrottleRecord.objects.create(
        label="managed", queue=f"share:MC {n}", passed=False, code="throttled_queued", detail="2200 jobs", lines=["<b>"]
    ),
    brokerage.VerdictRecord: lambda n: brokerage.VerdictRecord.objects.create(
        task_id=FIRST + n, chosen=[["S", 1.0]], skipped=[["T", "low_memory", "needs more"]], sentence="1 of 2 sites."
    ),
    brokerage.Site: lambda n: brokerage.Site.objects.create(name=f"SITE {n}"),
    brokerage.QueueEndpoint: lambda n: brokerage.QueueEndpoint.objects.create(
        queue=_queue(n), endpoint=_endpoint(n), order_read=1
    ),
    brokerage.LinkValue: lambda n: brokerage.LinkValue.objects.create(
        source="A", destination=f"B{n}", key="AGIS_closeness", value=n
    ),
    brokerage.HarvesterSlots: lambda n: brokerage.HarvesterSlots.objects.create(queue=f"Q{n}", slots=n),
    brokerage.SoftwareTags: lambda n: brokerage.SoftwareTags.objects.create(queue=f"Q{n}", data={"tags": []}),
    brokerage.JobCount: lambda n: brokerage.JobCount.objects.create(
        site=f"Q{n}", share="", work_queue_id=0, resource_type="", label="", status="running", jobs=n, cores=n
    ),
    brokerage.Sample: lambda n: brokerage.Sample.objects.create(at=NOW, site=f"Q{n}", running_jobs=n),
    brokerage.UserCount: lambda n: brokerage.UserCount.objects.create(
        site="Q", share="", user=f"u{n}", queued=n, running=n
    ),
    brokerage.QueueActivity: lambda n: brokerage.QueueActivity.objects.create(site=f"Q{n}", last_start=NOW),
    brokerage.PilotCalls: lambda n: brokerage.PilotCalls.objects.create(site=f"Q{n}", hour=NOW),
    brokerage.WorkerStats: lambda n: brokerage.WorkerStats.objects.create(
        harvester="h", queue=f"Q{n}", resource_type="SCORE", status="running", workers=n
    ),
    brokerage.WorkerNode: lambda n: brokerage.WorkerNode.objects.create(site="S", host=f"wn{n}", cpu_model="<b>"),
    brokerage.NodeGpus: lambda n: brokerage.NodeGpus.objects.create(site="S", host=f"wn{n}", vendor="x", model="y"),
    brokerage.WorkerNodeGpus: lambda n: brokerage.WorkerNodeGpus.objects.create(queue=f"Q{n}", vendor="x", model="y"),
    brokerage.WorkerNodeCpus: lambda n: brokerage.WorkerNodeCpus.objects.create(queue=f"Q{n}", level="x", percentage=9),
    brokerage.DatasetReplica: lambda n: brokerage.DatasetReplica.objects.create(
        dataset=f"d{n}", endpoint="SE", files=n, bytes=n, complete=True
    ),
    brokerage.ReplicaLookup: lambda n: brokerage.ReplicaLookup.objects.create(dataset=f"d{n}"),
    brokerage.Refreshed: lambda n: brokerage.Refreshed.objects.create(name=f"count {n}", at=NOW),
    brokerage.GridVersion: lambda n: brokerage.GridVersion.objects.create(part=f"part {n}", token=uuid.uuid4(), at=NOW),
    Event: lambda n: Event.objects.create(
        task_id=FIRST + n, dataset_id=1, job_id=n + 1, file_id=n + 1, process_id=0, min_event=0, max_event=9
    ),
    tasks.Task: _task,
    tasks.TaskParams: lambda n: tasks.TaskParams.objects.create(task=_task(n), params={"taskName": "<b>", "n": n}),
    tasks.JobParamsTemplate: lambda n: tasks.JobParamsTemplate.objects.create(task=_task(n), template="echo ${SN}"),
    tasks.Dataset: _dataset,
    tasks.File: lambda n: tasks.File.objects.create(task_id=FIRST + n, dataset_id=n, **FILE),
    tasks.FileRetry: lambda n: tasks.FileRetry.objects.create(id=n + 1, task_id=FIRST, dataset_id=1),
    tasks.Job: lambda n: tasks.Job.objects.create(id=FIRST + n, **JOB),
    tasks.JobArchive: lambda n: tasks.JobArchive.objects.create(id=FIRST + n, **{**JOB, "status": "finished"}),
    tasks.JobFile: lambda n: tasks.JobFile.objects.create(job_id=FIRST + n, file_id=n, type="input", lfn="<b>"),
    tasks.JobParams: lambda n: tasks.JobParams.objects.create(id=FIRST + n, params="echo"),
    tasks.JobMetadata: lambda n: tasks.JobMetadata.objects.create(id=FIRST + n, metadata={"n": n}),
    tasks.JobOutputReport: lambda n: tasks.JobOutputReport.objects.create(
        id=FIRST + n, attempt=1, status="finished", data={"file": {"fsize": 1}}
    ),
    tasks.TaskStatusLog: lambda n: tasks.TaskStatusLog.objects.create(task_id=FIRST + n, status="ready", by="feeder"),
    tasks.JobStatusLog: lambda n: tasks.JobStatusLog.objects.create(job_id=FIRST + n, status="sent", by="pilot"),
    tasks.JobRetryHistory: lambda n: tasks.JobRetryHistory.objects.create(
        task_id=FIRST, old_job_id=n, new_job_id=n + 1
    ),
    tasks.RetryRule: lambda n: tasks.RetryRule.objects.create(
        error_source="exe", error_code=90_000 + n, action="no_retry", description="<b>"
    ),
    tasks.ErrorClass: lambda n: tasks.ErrorClass.objects.create(error_source="exe", error_code=90_000 + n),
    tasks.RetryNote: lambda n: tasks.RetryNote.objects.create(
        job_id=FIRST + n, task_id=FIRST, code="retry_none", detail="<b>"
    ),
    tasks.ScoutReport: lambda n: tasks.ScoutReport.objects.create(
        task_id=FIRST + n,
        scouts=True,
        outcome="passed",
        detail="<b>",
        sample=n,
        finished_jobs=n,
        presets={},
        measured={},
    ),
    tasks.TaskChangeDue: lambda n: tasks.TaskChangeDue.objects.create(
        task_id=FIRST + n, change={"ramcount": n}, reason="more"
    ),
    tasks.AttentionItem: lambda n: tasks.AttentionItem.objects.create(
        key=f"asks:{n}", kind="asks", tone="warn", sentence="<b>", since=NOW, path="/tasks/"
    ),
    tasks.AlertRule: _alert_rule,
    tasks.AlertTold: lambda n: tasks.AlertTold.objects.create(
        rule=_alert_rule(n), key=f"asks:{n}", first_seen=NOW, sentence="<b>", path="/tasks/"
    ),
    tasks.Alert: lambda n: tasks.Alert.objects.create(
        rule=_alert_rule(n), way="mail", recipient="ada@lab.org", subject="<b>", payload={"text": "<b>"}
    ),
    tasks.Command: lambda n: tasks.Command.objects.create(task=_task(n), name="kill", owner="ada", comment="enough"),
    tasks.SubmissionKey: lambda n: tasks.SubmissionKey.objects.create(
        caller="ada", key=f"{n}", fingerprint=b"\0", reply={}
    ),
    tasks.Sandbox: lambda n: tasks.Sandbox.objects.create(
        owner="ada", name=f"jobO.{n}.tar.gz", stored=uuid.uuid4().hex, size=n, crc=n, sha256="0" * 64
    ),
    tasks.Workflow: _workflow,
    tasks.WorkflowPackage: lambda n: tasks.WorkflowPackage.objects.create(
        workflow=_workflow(n), path="001/001/001", software="reco", task_id=FIRST + n, boundary=n
    ),
    tasks.UserSecret: lambda n: tasks.UserSecret.objects.create(user="ada", name=f"password {n}", value=b"sealed"),
    tasks.OutputTemplate: lambda n: tasks.OutputTemplate.objects.create(
        task_id=FIRST + n, dataset=_dataset(n), file_name_template="out._${SN}"
    ),
    tasks.PlannedOutput: lambda n: tasks.PlannedOutput.objects.create(
        task=_task(n), dataset=f"data.{n}", file_name_template="out.${SN}"
    ),
    tasks.ShiftNote: lambda n: tasks.ShiftNote.objects.create(by="ada", text=f"<b>{n}"),
    tasks.Handover: lambda n: tasks.Handover.objects.create(
        by="ada", since=NOW, until=NOW + timedelta(hours=8), summary=f"<b>{n}"
    ),
    tasks.TasksSeen: lambda n: tasks.TasksSeen.objects.create(user=f"ada {n}", at=NOW),
    tasks.SavedView: lambda n: tasks.SavedView.objects.create(owner="ada", page="tasks", name=f"view {n}"),
    tasks.EmptyQueue: lambda n: tasks.EmptyQueue.objects.create(queue=f"SITE/{n}", since=NOW),
    tasks.Preassignment: lambda n: tasks.Preassignment.objects.create(task_id=FIRST + n, queue="SITE_A", since=NOW),
    tasks.ProcessLock: lambda n: tasks.ProcessLock.objects.create(vo="test", prod_source_label="user", work_queue_id=n),
    tasks.OutMessage: lambda n: tasks.OutMessage.objects.create(
        topic="jedi.tasks", kind="task_status", task_id=FIRST + n, owner="ada", payload={"status": "<b>"}, position=n
    ),
    tasks.InMessage: lambda n: tasks.InMessage.objects.create(
        message_id=f"m{n}", kind="kick", sender="worker:x", payload={"agent": "feeder", "task_id": n}
    ),
    tasks.Notification: lambda n: tasks.Notification.objects.create(task_id=FIRST + n, status="done", reason="<b>"),
    tasks.ProductionTask: lambda n: tasks.ProductionTask.objects.create(
        id=next_task_id(), params="<b>", db_role="deft"
    ),
    tasks.ProductionCommand: lambda n: tasks.ProductionCommand.objects.create(
        task_id=FIRST + n, name="<b>", db_role="deft"
    ),
    tasks.FeedReader: lambda n: tasks.FeedReader.objects.create(name=f"reader {n}"),
    tasks.PeriodicTask: lambda n: tasks.PeriodicTask.objects.create(task=_task(n), every_s=60, jobs=1, next_due=NOW),
    tasks.Harvester: lambda n: tasks.Harvester.objects.create(id=f"harvester {n}", owner="worker:x"),
    tasks.Worker: lambda n: tasks.Worker.objects.create(
        harvester="h", worker_id=n, status="running", site="SITE_A", message="<b>"
    ),
    tasks.WorkerJob: lambda n: tasks.WorkerJob.objects.create(harvester="h", worker_id=n, job_id=FIRST + n),
    tasks.HarvesterCommand: lambda n: tasks.HarvesterCommand.objects.create(
        harvester="h", command="KILL_WORKERS", params={"n": n}
    ),
    tasks.HarvesterDialog: lambda n: tasks.HarvesterDialog.objects.create(harvester="h", number=n, message="<b>"),
    tasks.HarvesterMetrics: lambda n: tasks.HarvesterMetrics.objects.create(
        harvester="h", host=f"host{n}", at=NOW, metrics={"rss_mib": n}
    ),
    tasks.ErrorFingerprint: _fingerprint,
    tasks.JobFailure: lambda n: tasks.JobFailure.objects.create(
        id=FIRST + n,
        ended=NOW,
        fingerprint=_fingerprint(0),
        task_id=FIRST,
        attempt=1,
        site="SITE_A",
        node=f"wn{n}",
        user="ada",
        activity="User",
        pilot_version="3.1.0",
        walltime_s=60,
        wasted_core_s=480,
    ),
    tasks.JobNode: lambda n: tasks.JobNode.objects.create(node=f"wn{n}", site="SITE_A", last_seen=NOW),
    tasks.UsualDuration: lambda n: tasks.UsualDuration.objects.create(
        task_type="prod",
        label="managed",
        processing_type=f"p{n}",
        status="pending",
        stays=n,
        median_s=700,
        low_s=60,
        high_s=9000,
        updated=NOW,
    ),
    tasks.JobEndDue: lambda n: tasks.JobEndDue.objects.create(id=FIRST + n),
    tasks.JobEnds: lambda n: tasks.JobEnds.objects.create(hour=NOW, dimension="site", key=f"SITE_{n}", finished=n),
    tasks.CatalogueDataset: lambda n: tasks.CatalogueDataset.objects.create(name=f"data.{n}", scope="test"),
    tasks.CatalogueFile: lambda n: tasks.CatalogueFile.objects.create(
        dataset=_catalogue(n), lfn=f"f{n}", scope="s", guid="g", size=1, adler32="1", endpoint="SE", url="file://x"
    ),
    tasks.FileReplica: lambda n: tasks.FileReplica.objects.create(
        scope="s", lfn=f"f{n}", endpoint="SE", url="file://x"
    ),
    tasks.TransferRule: lambda n: _rule(n),
    tasks.TransferRequest: lambda n: tasks.TransferRequest.objects.create(
        rule=_rule(n), scope="s", lfn=f"f{n}", bytes=1, adler32="1", source="SE", destination="TO"
    ),
}


def _rule(number: int) -> tasks.TransferRule:
    return tasks.TransferRule.objects.create(
        kind="copy", destination="TO", activity="Production Input", task_id=FIRST + number, job_id=number, files=1
    )


def fill(model: type[models.Model], count: int) -> list[Any]:
    """Make `count` rows of a model. Numbers start at 1."""
    return [MAKERS[model](number) for number in range(1, count + 1)]
