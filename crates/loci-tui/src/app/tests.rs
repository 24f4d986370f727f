//! The application driven by events alone.
