"""Benchmarks of the hot paths against what PostgreSQL itself does with the same rows, in the same run.

Only ratios of cases that ran in turn mean anything: machines differ, and one machine differs from minute to minute.
"""
