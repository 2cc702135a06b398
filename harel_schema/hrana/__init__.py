"""The Hrana protocol over HTTP."""
