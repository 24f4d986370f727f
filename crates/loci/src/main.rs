//! The loci binary.
fn main() {}
