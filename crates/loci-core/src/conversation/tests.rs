//! Tests of the conversation, feature by feature.

mod fixtures;
