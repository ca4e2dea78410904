"""Invariants of inputs that come from tape, as (name, sentence, query): see `flow_invariants`."""

from __future__ import annotations

from tasks_app.domain.states import TASK_FINAL

_ENDS = ", ".join(f"'{status}'" for status in sorted(TASK_FINAL))

# ruff: noqa: S608 - every piece is a constant of this module
ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "staging_file_has_request",
        "A file is staging only while its task has a staging rule for it on which nobody has acted, or is fed.",
        f"""
        SELECT c.jeditaskid, c.datasetid, c.fileid, c.lfn FROM jedi_datasets d
          JOIN jedi_tasks t ON t.jeditaskid = d.jeditaskid AND t.status NOT IN ({_ENDS}) AND t.lockedby IS NULL
          JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid AND c.status = 'staging'
         WHERE d.type = 'input' AND d.status NOT IN ('defined', 'toupdate', 'removed')
           AND NOT EXISTS (SELECT 1 FROM transfer_rules r JOIN transfer_requests q ON q.rule_id = r.id
                            WHERE r.jeditaskid = c.jeditaskid AND r.kind = 'stage' AND NOT r.is_settled
                              AND q.scope = c.scope AND q.lfn = c.lfn)""",
    ),
    (
        "staging_task_has_rule",
        "A task is staging only while it has a staging rule on which nobody has acted.",
        """
        SELECT t.jeditaskid FROM jedi_tasks t
         WHERE t.status = 'staging' AND NOT EXISTS (
               SELECT 1 FROM transfer_rules r WHERE r.jeditaskid = t.jeditaskid AND r.kind = 'stage' AND NOT r.is_settled)""",
    ),
)
