"""Tags and filters of the pages. Django wants them in a folder of this name."""
