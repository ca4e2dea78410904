"""Pages that say why: verdicts of brokers, waits, what-if."""
