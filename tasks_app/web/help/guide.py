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
            "1. The overview lists what needs attention, the most urgent first, each with since when and how much."
            " Nothing in the list means that all is normal.",
            "2. A link of the list leads to the thing itself: a task, a site, a share, an agent.",
            "3. On a task, the tab Why answers gate by gate; the first “no” is what holds it. For brokerage it "
            "has every site with the reason, the numbers, and what would help; What if tries other values without"
            " touching anything.",
            "4. Buttons on the task do what its state permits and you may do. Each first shows what would be hit "
            "and asks for a reason, which stands in the audit trail.",
            "5. Acknowledge or snooze what you have seen to, so that the next one knows.",
        ),
    ),
    Entry(
        "overview",
        "Overview",
        "overview",
        (
            "What needs attention, the latest numbers with their last 24 hours, running cores by share, what cost "
            "the most wall time, and what people changed in the window.",
        ),
        "pictures/overview.png",
    ),
    Entry(
        "lists",
        "Lists",
        "tasks",
        (
            "The address is the whole state of a page: filters, columns, order, time window. Copy it (y) and "
            "others see the same.",
            "Filters (f) are taken away one by one with the × of their chip. Counts beside the list say what "
            "there is; when a list is longer than 10 000, they are of its newest 10 000. Columns (c) are chosen "
            "and ordered; a click on a head orders by it where the database can do that quickly.",
            "CSV, NDJSON and JSON hold all that matches with the columns that are shown; they are the API's lists"
            " with the same parameters, so that a script starts from what you see.",
            "A view (s) keeps an address under a name, for you or for everybody; the one that is “seen first” "
            "opens when you come to the page.",
            "Rows are selected (x) one by one, by the page, or all that match; what is done to them is previewed "
            "with the numbers of jobs, sites and owners, and with those that will refuse.",
        ),
        "pictures/tasks.png",
    ),
    Entry(
        "task",
        "A task",
        "",
        (
            "The line under the name says in one sentence where the task stands. Tabs: why it waits, its timeline"
            " against what is usual, jobs, files with their places and last errors, causes of errors, sites, "
            "what scouts measured, flow of data, jobs over time, parameters, audit. Two tasks are compared at "
            "/tasks/compare/.",
        ),
        "pictures/task.png",
    ),
    Entry(
        "why",
        "Why",
        "",
        ("Gates in their order, sites with their first reason, near misses, reasons over the last 48 hours.",),
        "pictures/why.png",
    ),
    Entry(
        "errors",
        "Errors",
        "errors",
        (
            "Messages that differ only in numbers, names and paths are one kind of failure. Kinds are ranked by "
            "the core hours that they cost, with where they happen: one worker node, one site, or everywhere. A "
            "ticket, advice, or “known until” stands on every job of the kind, and takes it out of what needs "
            "somebody.",
        ),
        "pictures/errors.png",
    ),
    Entry(
        "sites",
        "Sites, shares, work queues",
        "sites",
        (
            "Sites with what runs against what is pledged, failures against the same hour of last week, and black"
            " holes among worker nodes; and for each site why it gets no work. Shares against their targets, and "
            "who is starved and why. Work queues with what holds them back, and a form that says which queue a "
            "task would get.",
        ),
        "pictures/sites.png",
    ),
    Entry(
        "brokerage",
        "Brokerage",
        "brokerage",
        (
            "Decisions over time, which site was refused for which reason, tasks for which no site was found, and"
            " every decision with its inputs, gate by gate.",
        ),
        "pictures/brokerage.png",
    ),
    Entry(
        "agents",
        "Agents",
        "agents",
        (
            "The programs that move tasks and jobs: when each ran last, how long it took, what it found, what "
            "waits for it. Whoever may operate runs one at once or pauses it.",
        ),
    ),
    Entry(
        "times",
        "Times and themes",
        "",
        (
            "Times are UTC; a click on the clock shows them in this place's time. T changes between light, dark "
            "and what the system says. Pages that watch refresh themselves; p pauses that.",
        ),
    ),
)
