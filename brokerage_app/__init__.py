"""Where work may run: the grid, the brokers, shares of CPU, and the verdicts that explain each decision.

Rooms, from the ground up: vocabulary, formulas, policy, cases, filters, brokers, advice (all pure); models, grid,
verdicts, agents, admin, management. It imports `jedisite` only. Start at `brokers/choosing.py`, the one door to all brokers.
"""
