//! How things are written for people, under the name that this module's verbs know.

pub(crate) use loci_app::reports::display::{
    dollars, first_lines, indented, minute, minute_of_ms, minute_of_ms_in, path, plain, size, written,
};
