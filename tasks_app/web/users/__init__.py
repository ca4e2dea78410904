"""Pages on users."""
