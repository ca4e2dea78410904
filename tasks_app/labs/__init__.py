"""Benchmarks, simulations, made-up tasks and the demonstration. Nothing of the product imports it."""
