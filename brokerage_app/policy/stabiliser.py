"""How many jobs one user may have waiting at a queue. Pure.

A user's queued jobs at a queue are kept to that part of what the queue starts in a reasonable time which the user's
running jobs are of all running ones there (analysis stabiliser, JEDI brokerage document). All numbers are of one share.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokerage_app.policy.configuration import Configuration


@dataclass(frozen=True, slots=True)
class StabiliserLimits:
    """
    base_queued         a queue with fewer queued jobs than this accepts jobs of all users
    base_wait_h         so does one whose queued jobs start within so many hours
    base_user_queued    what a user may always have waiting
    user_per_running    the same for each running job of the queue
    queued_per_running  most queued jobs for each running job of the queue
    wait_h              or as many as start in so many hours
    """

    base_queued: float = 100.0
    base_wait_h: float = 8.0
    base_user_queued: float = 5.0
    user_per_running: float = 0.05
    queued_per_running: float = 2.0
    wait_h: float = 12.0

    @classmethod
    def from_configuration(cls, configuration: Configuration, *, vo: str = "") -> StabiliserLimits:
        def read(key: str) -> float:
            return float(configuration.get("anal_jobbroker", key, vo=vo))

        return cls(
            base_queued=read("BASE_QUEUE_LENGTH_PER_PQ"),
            base_wait_h=read("BASE_EXPECTED_WAIT_HOUR_ON_PQ"),
            base_user_queued=read("BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"),
            user_per_running=read("BASE_QUEUE_RATIO_ON_PQ"),
            queued_per_running=read("STATIC_MAX_QUEUE_RUNNING_RATIO"),
            wait_h=read("MAX_EXPECTED_WAIT_HOUR"),
        )


DEFAULT_LIMITS = StabiliserLimits()


@dataclass(frozen=True, slots=True)
class UserRoom:
    """What a user may have waiting at a queue.

    full         the queue has enough waiting for a limit to apply
    queue_most   queued jobs that the queue can afford
    part         the user's part of them, 0 to 1
    most         queued jobs that the user may have
    queued       those the user has
    """

    full: bool
    queue_most: float
    part: float
    most: float
    queued: int

    @property
    def exceeded(self) -> bool:
        return self.full and self.queued > self.most

    @property
    def left(self) -> float:
        """How many more would be within the limit; below 0 beyond it."""
        return self.most - self.queued


def user_room(
    *,
    queued: int,
    running: int,
    started_per_h: float,
    users: int,
    user_queued: int,
    user_running: int,
    limits: StabiliserLimits = DEFAULT_LIMITS,
) -> UserRoom:
    """The room for a user at a queue, from the jobs of a share there.

    queued         defined, assigned, activated and starting
    started_per_h  jobs of the share that start in an hour (`share_rate`)
    users          users who have jobs there, this one included if so
    """
    most = max(limits.base_queued, limits.queued_per_running * running, limits.wait_h * started_per_h)
    part = max(user_running / running if running > 0 else 0.0, 1 / max(users, 1))
    return UserRoom(
        full=queued >= limits.base_queued
        and queued >= limits.base_wait_h * started_per_h
        and user_queued + user_running > 0,
        queue_most=most,
        part=part,
        most=max(limits.base_user_queued, limits.user_per_running * running, most * part),
        queued=user_queued,
    )


def share_rate(started_per_h: float, running_of_share: int, running: int) -> float:
    """The part of a queue's starts in an hour that is the share's: as of its running jobs; 0 when none runs."""
    return started_per_h * running_of_share / running if running > 0 else 0.0
