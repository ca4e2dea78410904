"""Who starts pilots: one submitter for each kind of batch system, and the loop that keeps slots filled. No Django."""
