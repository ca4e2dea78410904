"""Caps on users, overloaded queues, tasks that are withheld. Pure."""
