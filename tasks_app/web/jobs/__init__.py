"""Pages on jobs."""
