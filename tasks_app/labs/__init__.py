"""The yard: benchmarks, simulations, made-up tasks, the demonstration. Nothing of the product imports it."""
