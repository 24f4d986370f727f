//! The query engine: a pure turn machine and the drivers that perform its effects.
