"""Pages on datasets and the local catalogue."""
