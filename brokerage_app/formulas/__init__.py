"""One formula a file: memory, disk, walltime, network, hardware, software of a job at a queue. Pure.

Imports `vocabulary`. Each docstring names the document that the formula comes from.
"""
