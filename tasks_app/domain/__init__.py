"""States and their moves, refusal codes, time-outs, errors of jobs, priorities: tables and what follows from them. Pure.

Imports `jedisite.vocabulary` and `jedisite.refusals` only. Start at `states.py`.
"""
