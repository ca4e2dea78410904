"""Benchmarks of events. Imports all other rooms of this app, and the tools of `tasks_app.labs`."""
