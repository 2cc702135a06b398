"""Where a store reads and commits: a connection of its own, or a server."""
