//! What a shell command would run, read, write and fetch.
