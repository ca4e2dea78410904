"""Ganga's rules as pure functions: states of masters and subjobs, how splitters cut, ids, what a submission comes to.

Imported by the interface here and by the site's view of subjobs. Imports nothing.
"""
