//! Built-in tools and process execution.
