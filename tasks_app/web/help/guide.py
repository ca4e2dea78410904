"""What the help says about each page. Texts only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Entry:
    """One part of the help: `page` is the name of the address that it is about, `picture` a static file; "" is none."""

    slug: str
    title: str
    page: str
    lines: tuple[str, ...]
    picture: str = ""


GUIDE: Final = (
    Entry(
        "shift",
        "A shift in five steps",
        "",
        (
            "1. The overview lists what needs attention, most urgent first, each item with its start and its "
            "size. “All normal” means that no rule found a problem.",
            "2. Each item links to its cause: a task, a site, a share or an agent.",
            "3. On a task, the tab Why shows the gates in order; the first “no” is what the task waits for. For "
            "brokerage it lists every site with the reason, the numbers and what would help. What if tries other "
            "values and changes nothing.",
            "4. The buttons on a task show what its state permits and you may do. Each button first shows what "
            "will be affected and asks for a reason, which is kept in the audit trail.",
            "5. Acknowledge or snooze what you have handled, so that the next shifter sees it. The page Shift drafts "
            "the hand-over.",
        ),
    ),
    Entry(
        "own-tasks",
        "My tasks",
        "own-tasks",
        (
            "Your tasks that need a decision, that wait, with the reason, that run, and that have ended since you "
            "last marked ended tasks as seen.",
        ),
    ),
    Entry(
        "shift-page",
        "The page of a shift",
        "shift",
        (
            "What is open now and what to watch, and what happened in the last 8 hours or any other window: errors, "
            "new ones first; sites that fail more than the day before; tasks that stopped, by cause; what was done "
            "and by whom; queues that changed their status. Shifters write notes there.",
            "To hand over, edit the draft at the end of the page and send it. The next shifter reads it at the top "
            "of the page and acknowledges it. For a mail or a chat, take Report as text; for a PDF, print the page.",
        ),
    ),
    Entry(
        "overview",
        "Overview",
        "overview",
        (
            "What needs attention, the latest numbers with the last 24 hours, running cores by share, what wasted "
            "most walltime, and what people changed in the window.",
        ),
        "pictures/overview.png",
    ),
    Entry(
        "lists",
        "Lists",
        "tasks",
        (
            "The address holds the whole state of a page: filters, columns, order and time window. Copy it (y), "
            "and others see the same page.",
            "Remove a filter (f) with the × on its chip. The counts beside the list show which values occur; for "
            "a list of more than 10 000 rows they cover its newest 10 000. Select and order columns (c); click on "
            "a column title to sort by it, where the database can do that quickly.",
            "CSV, NDJSON and JSON contain all matching rows with the shown columns. They come from the API with "
            "the same parameters, so a script can start from what you see.",
            "A view (s) saves an address under a name, for you or for everybody; your default view opens when you "
            "come to the page.",
            "Select rows (x) one by one, by the page, or all that match. Each action is first previewed with the "
            "numbers of jobs, sites and owners, and with the rows that will refuse it.",
        ),
        "pictures/tasks.png",
    ),
    Entry(
        "task",
        "A task",
        "",
        (
            "The line under the name sums up the task in one sentence. Tabs: why it waits, its timeline compared "
            "with usual times, jobs, files with their locations and last errors, causes of errors, sites, scout "
            "measurements, data flow, jobs over time, parameters, audit. Compare two tasks at /tasks/compare/.",
        ),
        "pictures/task.png",
    ),
    Entry(
        "why",
        "Why",
        "",
        ("Gates in order, sites with their first reason, near misses, and reasons over the last 48 hours.",),
        "pictures/why.png",
    ),
    Entry(
        "workflows",
        "Workflows",
        "workflows",
        (
            "Jobs of several steps. The page of a workflow says what it does and waits for, draws its packages as a "
            "graph with the longest chain that is left, and has the same as a table. Each package leads to the story "
            "of its line: what it reads, the jobs that tried it, their failures, and what it wrote. A definition can "
            "be checked, and its graph drawn, before anything runs.",
        ),
    ),
    Entry(
        "errors",
        "Errors",
        "errors",
        (
            "Messages that differ only in numbers, names and paths count as one kind of failure. Kinds are ranked "
            "by wasted core hours, with where they happen: one worker node, one site, or everywhere. The page of "
            "such a job shows the ticket and the advice of its kind, and marks the error as expected until the date set for it.",
        ),
        "pictures/errors.png",
    ),
    Entry(
        "sites",
        "Sites, shares, work queues",
        "sites",
        (
            "Sites with running jobs compared with pledges, failures compared with the same hour of last week, "
            "black holes among worker nodes, and why each site gets no more work. Shares compared with their "
            "targets, and which are starved and why. Work queues with their throttles, and a form that shows "
            "which queue a task would get.",
        ),
        "pictures/sites.png",
    ),
    Entry(
        "brokerage",
        "Brokerage",
        "brokerage",
        (
            "Decisions over time, which sites were refused for which reasons, tasks for which no site was found, "
            "and every decision with its inputs, gate by gate.",
        ),
        "pictures/brokerage.png",
    ),
    Entry(
        "agents",
        "Agents",
        "agents",
        (
            "The programs that move tasks and jobs: when each last ran, for how long, with what result, and its "
            "backlog. Shifters and administrators can run an agent once or pause it.",
        ),
    ),
    Entry(
        "times",
        "Times and themes",
        "",
        (
            "Times are in UTC; click on the clock to see local time. T switches between light, dark and the "
            "system's theme. Live pages refresh themselves; p pauses that.",
        ),
    ),
)
