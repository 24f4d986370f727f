//! The doctor on stores that are fine, damaged in every way, and mended by hands that die.

mod corpus;
mod crash;
mod damage;
mod lab;
mod single;
