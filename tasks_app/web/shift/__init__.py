"""Pages of a shift: what a window of time holds, notes, and the hand-over to the next shifter.

Imports the sections below it: frame, lists, commands.
"""
