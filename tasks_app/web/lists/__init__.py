"""How lists are shown: cells, facets, saved views, misspelt parameters."""
