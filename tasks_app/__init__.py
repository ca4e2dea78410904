"""Tasks to jobs: submission, inputs, splitting, generation, dispatch, outcomes, retries; and the pages and calls on them.

Rooms, from the ground up: domain, params, splitting, refining (pure); configured, models, failures, counts, ddm,
lifecycle; the stages inputs, submission, retries, scouts, outcomes, generation, dispatch, upkeep; then what reads and
acts, the faces (agents, api, web, admin, management) and labs. `docs/map.md` leads to the file.
"""
