"""The first page, and the page on what needs attention."""
