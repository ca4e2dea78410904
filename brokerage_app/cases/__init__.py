"""One decision with all that is the same for every site worked out, and the weights of sites. Pure.

Imports the floors below it. Start at `case.py`.
"""
