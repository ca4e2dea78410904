"""The run of a simulation: tasks come, the real throttler, broker and splitter place their jobs, pilots take them.

Time is a number that events move on. What decides is the code that decides for real: `throttle`, `broker`, `plan`,
the order in which shares are served, and priorities inside a share. Only sites, pilots, payloads and people are made up.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from random import Random
from typing import Final

from brokerage_app.brokers import production_job
from brokerage_app.cases.production_case import ProductionSettings
from brokerage_app.policy.configuration import Configuration
from brokerage_app.policy.throttle import JobCounts, Levels, Situation, throttle
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import Counts, SiteView
from brokerage_app.vocabulary.snapshot import Grid
from tasks_app.labs.simulating.simulated_data import SimData
from tasks_app.labs.simulating.simulated_jobs import Outcome, Sample, SimJob, SimTask, SiteState
from tasks_app.labs.simulating.steering import ByShares, ByWorkQueues, Steering
from tasks_app.labs.simulating.world import DAY, ENDLESS, HOUR, Campaign, SimShare, SimSite, World
from tasks_app.splitting.chunk import Chunk, InputFile
from tasks_app.splitting.limits import SplitLimits
from tasks_app.splitting.plan import Candidate, plan

PASS_S: Final = 120.0
SAMPLE_S: Final = 600.0
ORDER_S: Final = 10.0
POLL_S: Final = 60.0
PATIENCE_S: Final = HOUR
"""A job that is made waits for a pass of the generator, and then for the end of another job at its site; only after this
time does it count as work that a share could have had done."""
MOST_ROUNDS: Final = 8
FAILING: Final = 0.03
PRIORITIES: Final = (300, 500, 700)
RESOURCE_TYPE: Final = "SCORE"
_LIMITS: Final = SplitLimits(files_per_job=1)


class Simulation:
    """One run. `settings` are those of the broker, `sloppy_percent` is SLOPPY_DISPATCH_RATIO.

    link_rate   MB/s of a link in the mean: inputs are copied to sites, and outputs gathered; None: jobs move nothing
    mover       the configuration of what moves them
    """

    def __init__(
        self,
        world: World,
        rng: Random,
        *,
        settings: ProductionSettings | None = None,
        sloppy_percent: float = 10.0,
        link_rate: float | None = None,
        mover: Configuration | None = None,
    ) -> None:
        self.world, self.rng, self.sloppy = world, rng, sloppy_percent / 100
        self.settings = settings or ProductionSettings()
        self.steering: Steering = ByWorkQueues(world.queues) if world.queues else ByShares(world.shares)
        self.leaves: dict[str, SimShare] = {leaf.name: leaf for leaf in world.leaves}
        self.now = 0.0
        self.data: SimData | None = None
        if link_rate is not None:
            self.data = SimData(world.sites, rng, link_rate, self._at, lambda: self.now, mover)
        self.sites = {s.name: self._site(s) for s in world.sites}
        self.slots = sum(s.slots for s in world.sites)
        self.power = sum(s.slots * s.core_power for s in world.sites) / self.slots
        self.executing = dict.fromkeys(self.leaves, 0.0)
        self.running = dict.fromkeys(self.leaves, 0)
        self.queued = dict.fromkeys(self.leaves, 0)
        self.assigned = dict.fromkeys(self.leaves, 0)
        self.busy = 0
        self.tasks: dict[str, list[SimTask]] = {name: [] for name in self.leaves}
        self.outcome = Outcome()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count(1)
        self._jobs: dict[int, SimJob] = {}
        self._arriving = dict.fromkeys(self.leaves, 0.0)
        self._next_size = dict.fromkeys(self.leaves, world.arriving_jobs[0])
        self._last_grid: Grid | None = None
        self._order: Sequence[str] = ()
        self._order_until = -1.0

    def _site(self, given: SimSite) -> SiteState:
        view = SiteView(given.name, site=given.name, cores=1, core_power=given.core_power, capability="score")
        view = self.data.view(view) if self.data else view
        none = dict.fromkeys(self.leaves, 0)
        return SiteState(given, view, given.slots, {n: [] for n in none}, {**none}, {**none}, {**none})

    # --- the run ---

    def run(self, tell: Callable[[float], None] = lambda day: None) -> Outcome:
        """Run to the end. `tell` is called with the day, once an hour of simulated time."""
        end = self.world.days * DAY
        self._at(0.0, self._generator_pass)
        self._at(POLL_S / 2, self._poll)
        self._at(0.0, self._sample)
        told = 0.0
        while self._events and self._events[0][0] < end:
            self.now, _, act = heapq.heappop(self._events)
            act()
            if self.now - told >= HOUR:
                told = self.now
                tell(self.now / DAY)
        if self.data:
            self.outcome.links, self.outcome.transfer_waits = self.data.figures(), self.data.links.waits
        return self.outcome

    def _at(self, when: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), act))

    # --- people ---

    def _submit(self) -> None:
        """People submit tasks: shares with endless demand always have some waiting, others get what comes in the meantime."""
        for name, leaf in self.leaves.items():
            demand, tasks = leaf.demand(self.now), self.tasks[name]
            if demand == ENDLESS:
                waiting = self.queued[name] + sum(task.jobs_left for task in tasks)
                while waiting < self.slots:
                    waiting += self._new_task(name, leaf)
            elif demand:
                self._arriving[name] += demand * PASS_S / leaf.mean_job_s
                while self._arriving[name] >= self._next_size[name]:
                    self._arriving[name] -= self._new_task(name, leaf, self._next_size[name])
                    self._next_size[name] = self.rng.randint(*self.world.arriving_jobs)
            elif isinstance(leaf.demand, Campaign):
                # It is over: what has not been made into jobs is not wanted any more.
                tasks.clear()
            tasks.sort(key=lambda task: (-task.priority, task.id))

    def _new_task(self, share: str, leaf: SimShare, jobs: int = 0) -> int:
        jobs = jobs or self.rng.randint(*self.world.tasks_of_jobs)
        priority = self.rng.choice(PRIORITIES)
        data = self.data.of_task(leaf.label) if self.data else None
        self.tasks[share].append(SimTask(next(self._numbers), share, leaf.label, priority, jobs, self.now, data))
        return jobs

    # --- the job generator ---

    def _generator_pass(self) -> None:
        self._submit()
        grid = self._grid()
        for name in self._turns():
            for _ in range(MOST_ROUNDS):
                grid, lacks = self._turn(name, self._turns()[name], grid)
                if not lacks:
                    break
        self._at(self.now + PASS_S, self._generator_pass)

    def _turns(self) -> dict[str, list[str]]:
        """The order of turns by what there is now; of each, the shares or work queues that something is wanted of."""
        queued = self._activated_power()
        waiting = [name for name, tasks in self.tasks.items() if tasks]
        turns = self.steering.generating(self.executing, queued, waiting)
        return {name: [one for one in members if one in self.leaves] for name, members in turns.items()}

    def _activated_power(self) -> dict[str, float]:
        return {name: (jobs - self.assigned[name]) * self.power for name, jobs in self.queued.items()}

    def _turn(self, name: str, members: Sequence[str], grid: Grid) -> tuple[Grid, bool]:
        """One turn of a share, or of work queues. Returns the grid with the jobs that were made, and whether more may be made
        at once."""
        tasks = [task for one in members for task in self.tasks[one]]
        if not tasks:
            return grid, False
        jobs = JobCounts(sum(self.running[one] for one in members), sum(self.queued[one] for one in members))
        allowed = throttle(
            Situation(
                name,
                tasks[0].label,
                RESOURCE_TYPE,
                Levels(jobs, jobs, jobs),
                waiting_priority=max(task.priority for task in tasks),
                highest_priority=max(PRIORITIES) if jobs.running else None,
                not_running_highest=jobs.not_running,
            )
        )
        left, made = allowed.max_jobs or 0, 0
        for task in tasks:
            if left <= 0:
                break
            if allowed.refuses(task.priority):
                continue
            grid, placed = self._place(task, left, grid)
            left, made = left - placed, made + placed
            if not placed:
                break
        return grid, allowed.lack_of_jobs and made > 0

    def _place(self, task: SimTask, most: int, grid: Grid) -> tuple[Grid, int]:
        share, work_queue = self.steering.counted_as(task.share)
        needs = TaskNeeds(
            cores=1,
            memory_mb=2000,
            label=task.label,
            share=share,
            work_queue=work_queue,
            vo="atlas",
            priority=task.priority,
            resource_type=RESOURCE_TYPE,
            cpu_hs06s=10_000.0,
            task_id=task.id,
        )
        jobs = min(most, task.jobs_left)
        if self.data and task.data:
            needs = self.data.needs(needs, task.data, jobs)
        verdict = production_job.broker(needs, grid, self.settings)
        self.outcome.verdicts += 1
        if not verdict.chosen:
            return grid, 0
        files = [InputFile(number, "") for number in range(jobs)]
        candidates = [
            Candidate(c.site, _LIMITS, c.weight, c.queued, max((c.cap or 0) - c.queued, 0)) for c in verdict.chosen
        ]
        draws = (self.rng.random() for _ in iter(int, 1))
        placed = 0
        sites = dict(grid.sites)
        for name, groups in plan(Chunk(1, files), candidates, draws).by_site().items():
            here = not self._lacks_input(self.sites[name], task)
            sites[name] = sites[name].with_jobs(len(groups), share=share, resource_type=RESOURCE_TYPE, activated=here)
            self._queue(self.sites[name], task, len(groups))
            placed += len(groups)
        task.jobs_left -= placed
        if not task.jobs_left:
            self.tasks[task.share].remove(task)
        return replace(grid, sites=sites).deriving_from(grid), placed

    def _grid(self) -> Grid:
        """The snapshot of the grid that one pass of the generator sees."""
        sites = {}
        for name, site in self.sites.items():
            jobs: dict[str, dict[str, Counts]] = {}
            for leaf in self.leaves:
                share, _ = self.steering.counted_as(leaf)
                had = jobs.get(share, {}).get(RESOURCE_TYPE, Counts())
                own = Counts(
                    site.running[leaf],
                    activated=len(site.waiting[leaf]),
                    assigned=site.assigned[leaf],
                    transferring=site.transferring[leaf],
                )
                here = had + own
                if here != Counts():
                    jobs[share] = {RESOURCE_TYPE: here}
            running = site.given.slots - site.free
            queued = sum(map(len, site.waiting.values())) + sum(site.assigned.values())
            sites[name] = site.view.changed(jobs=jobs, running=running, queued=queued, last_start_s=0.0)
        grid = self.data.grid(sites) if self.data else Grid(sites=sites)
        self._last_grid = grid if self._last_grid is None else grid.deriving_from(self._last_grid)
        return self._last_grid

    def _lacks_input(self, site: SiteState, task: SimTask) -> bool:
        return self.data is not None and task.data is not None and not self.data.is_at(task.data, site.given.name)

    def _queue(self, site: SiteState, task: SimTask, jobs: int) -> None:
        self.queued[task.share] += jobs
        self.outcome.made += jobs
        if not self._lacks_input(site, task):
            for _ in range(jobs):
                self._activate(site, task, self.now)
            return
        self.assigned[task.share] += jobs
        site.assigned[task.share] += jobs
        for _ in range(jobs):
            self._bring(site, task)

    def _activate(self, site: SiteState, task: SimTask, made: float) -> None:
        number = next(self._numbers)
        self._jobs[number] = SimJob(task, made, self.now)
        heapq.heappush(site.waiting[task.share], (-task.priority, number))
        site.waits(task.share, task.priority, 1)

    def _bring(self, site: SiteState, task: SimTask) -> None:
        made = self.now

        def ended(is_there: bool) -> None:
            self.assigned[task.share] -= 1
            site.assigned[task.share] -= 1
            if is_there:
                self._activate(site, task, made)
            else:
                self.queued[task.share] -= 1
                self.outcome.without_input += 1
                self._fail(task)

        assert self.data is not None and task.data is not None
        self.data.bring(task.data, site.given.name, ended)

    # --- pilots ---

    def _poll(self) -> None:
        """Pilots of idle slots ask: a slot stands still for half a minute, in the mean, between two jobs."""
        for site in self.sites.values():
            while site.free and self._dispatch(site):
                pass
        self._at(self.now + POLL_S, self._poll)

    def _served(self) -> Sequence[str]:
        """The order of the shares or work queues, worked out anew every ten seconds, as the dispatcher does."""
        if self.now >= self._order_until:
            queued = self._activated_power()
            self._order = self.steering.serving(self.executing, queued)
            self._order_until = self.now + ORDER_S
        return self._order

    def _dispatch(self, site: SiteState) -> bool:
        """A free slot takes a job: the most urgent of the share that is served first; now and then just the oldest."""
        if self.rng.random() < self.sloppy:
            oldest = min(
                ((min(n for _, n in heap), share) for share, heap in site.waiting.items() if heap), default=None
            )
            if oldest is None:
                return False
            number, share = oldest
            heap = site.waiting[share]
            entry = next(e for e in heap if e[1] == number)
            heap.remove(entry)
            heapq.heapify(heap)
            self.outcome.by_chance += 1
        else:
            first = next((s for s in self._served() if site.waiting.get(s)), None)
            if first is None:
                return False
            share = first
            entry = heapq.heappop(site.waiting[share])
            if any(waiting for priority, waiting in site.urgency[share].items() if priority > -entry[0]):
                self.outcome.inversions += 1
        self._start(site, share, entry[1])
        return True

    def _start(self, site: SiteState, share: str, number: int) -> None:
        task, made, _ = self._jobs.pop(number)
        site.free -= 1
        site.waits(share, task.priority, -1)
        site.running[share] += 1
        self.busy += 1
        self.queued[share] -= 1
        self.running[share] += 1
        self.executing[share] += site.given.core_power
        self.outcome.dispatched += 1
        self.outcome.task_waits.setdefault((share, task.priority), []).append(self.now - made)
        leaf = self.leaves[share]
        mu = -(leaf.spread**2) / 2
        takes = (
            leaf.mean_job_s * self.rng.lognormvariate(mu, leaf.spread) * 10 / site.given.core_power * self.power / 10
        )
        self._at(self.now + max(takes, 60.0), lambda: self._end(site, share, task))

    def _end(self, site: SiteState, share: str, task: SimTask) -> None:
        site.free += 1
        site.running[share] -= 1
        self.busy -= 1
        self.running[share] -= 1
        self.executing[share] -= site.given.core_power
        if self.rng.random() < FAILING:
            self._fail(task)
        elif self.data and task.data and task.data.nucleus not in ("", site.given.name):
            self._gather(site, task, self.data)

    def _fail(self, task: SimTask) -> None:
        """The work of a job has to be done again."""
        self.outcome.failed += 1
        if not task.jobs_left:
            self.tasks[task.share].append(task)
        task.jobs_left += 1

    def _gather(self, site: SiteState, task: SimTask, data: SimData) -> None:
        def ended(is_there: bool) -> None:
            site.transferring[task.share] -= 1
            if not is_there:
                self._fail(task)

        site.transferring[task.share] += 1
        assert task.data is not None
        data.gather(task.data, site.given.name, ended)

    # --- what is looked at ---

    def _overdue(self, share: str) -> int:
        """Jobs that could have been started by now: others are still on their way to a slot that becomes free."""
        made = sum(task.jobs_left for task in self.tasks[share] if task.arrived <= self.now - PATIENCE_S)
        numbers = (number for site in self.sites.values() for _, number in site.waiting[share])
        return made + sum(self._jobs[number].ready <= self.now - PATIENCE_S for number in numbers)

    def _sample(self) -> None:
        wanted = {}
        for name, leaf in self.leaves.items():
            slots = self.slots if leaf.demand(self.now) == ENDLESS else self.running[name] + self._overdue(name)
            wanted[name] = slots * self.power
        waiting = sum(self.queued.values()) + sum(t.jobs_left for tasks in self.tasks.values() for t in tasks)
        self.outcome.samples.append(Sample(self.now, dict(self.executing), wanted, self.busy, self.slots, waiting))
        self._at(self.now + SAMPLE_S, self._sample)
