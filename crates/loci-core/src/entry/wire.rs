//! The head of an entry as it is written, read in one pass. A field of another shape than the usual counts as absent,
//! never as an error.

use std::borrow::Cow;

use serde::Deserialize;

use crate::glance::Glance;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireHead<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) type_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) subtype: Glance<'a>,
    #[serde(borrow, default)]
    pub(super) uuid: Glance<'a>,
    #[serde(borrow, default)]
    pub(super) parent_uuid: Glance<'a>,
    #[serde(borrow, default)]
    pub(super) logical_parent_uuid: Glance<'a>,
    #[serde(borrow, default)]
    pub(super) timestamp: Glance<'a>,
    #[serde(borrow, default)]
    pub(super) is_sidechain: Glance<'a>,
    #[serde(borrow, default)]
    pub(super) is_meta: Glance<'a>,
    #[serde(borrow, default)]
    pub(super) is_compact_summary: Glance<'a>,
    #[serde(borrow, default)]
    pub(super) is_api_error_message: Glance<'a>,
    #[serde(borrow, default)]
    pub(super) message: Glance<'a>,
}
