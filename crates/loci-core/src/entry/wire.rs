//! The head of an entry as it is written, read in one pass. A field of another shape than the usual counts as absent,
//! never as an error.

use std::borrow::Cow;

use serde::Deserialize;

use crate::lenient::LenientValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireHead<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) type_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) subtype: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) uuid: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) parent_uuid: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) logical_parent_uuid: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) timestamp: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) is_sidechain: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) is_meta: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) is_compact_summary: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) is_api_error_message: LenientValue<'a>,
    #[serde(borrow, default)]
    pub(super) message: LenientValue<'a>,
}
