"""An installation with one more agent, which writes down each of its passes: for tests with real processes."""
