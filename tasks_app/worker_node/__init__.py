"""Programs that run on worker nodes and beside them: the pilot, and what starts pilots. No Django."""
