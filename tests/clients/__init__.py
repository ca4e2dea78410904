"""The real programs of PanDA's users and sites, from the package index, against this site over HTTP on loopback."""
