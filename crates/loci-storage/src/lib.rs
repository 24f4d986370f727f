//! Everything on disk: session log, instruction files, git state, spilled results.
