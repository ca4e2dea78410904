"""Small drawings as SVG: geometry from numbers. Pure.

Imports `domain` and words. Pages and template tags use it.
"""
