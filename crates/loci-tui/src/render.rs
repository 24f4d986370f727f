//! Blocks as rows, for a width: pure functions, and a timeline that says which rows are final.

pub mod markdown;

use crate::theme::Theme;

/// What a renderer needs to know beside the block.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderContext {
    /// Columns.
    pub width: usize,
    /// Looks by role.
    pub theme: Theme,
    /// Whether results and thinking are shown whole.
    pub is_verbose: bool,
    /// Whether rows are for a screen reader: flat lines with labels, not wrapped.
    pub is_screen_reader: bool,
    /// Whether the terminal takes links (OSC 8); else addresses are written out.
    pub has_hyperlinks: bool,
    /// Whether things that move are not wanted.
    pub is_motion_reduced: bool,
}

impl RenderContext {
    /// Makes the context of a terminal with links, not verbose.
    pub fn new(width: usize, theme: Theme) -> Self {
        Self {
            width,
            theme,
            is_verbose: false,
            is_screen_reader: false,
            has_hyperlinks: true,
            is_motion_reduced: false,
        }
    }
}
