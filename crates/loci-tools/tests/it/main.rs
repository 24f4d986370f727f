//! Permission decisions on real tools over a real directory tree.

mod permission_cases;
mod permission_table;
mod tree;
