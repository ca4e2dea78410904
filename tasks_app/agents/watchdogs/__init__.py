"""Watchdogs: agents that act when something takes too long, fails too often, or takes too much. One file each."""
