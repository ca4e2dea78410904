"""Pages on what keeps the site going: agents, workers, time-outs, configuration, metrics, the audit trail."""
