"""Small drawings as SVG: geometry from numbers. Pure.

Imports `domain` and words. Pages and template tags use it. Start at `scales.py`, which all
others place their numbers, times and marks by; diagrams of states lay out a graph and have no scale.
"""
