"""What instances of harvester, and others that start pilots, tell the site and are told by it."""
