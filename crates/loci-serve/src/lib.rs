//! The wire front ends: headless text, json and stream-json.
