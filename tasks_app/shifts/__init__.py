"""Shifts: what a window of time holds, the notes of shifters, and hand-overs from one shifter to the next.

`shift_reading` asks the database, `rules` makes lines and the draft of a hand-over of the answers, `logbook` writes.
"""
