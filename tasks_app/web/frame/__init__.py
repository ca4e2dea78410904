"""What every page has around it: time window, search, bells, keyset pages."""
