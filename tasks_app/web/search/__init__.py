"""The search box and its results."""
