//! A whole screen of rows, for pagers and pickers on the alternate screen.

use super::pen::Pen;
use super::{Size, row_diff};
use crate::text::{Row, truncate};

/// Draws whole screens. Entering and leaving the alternate screen is the terminal guard's.
#[derive(Debug, Default)]
pub struct FullScreen {
    size: Option<Size>,
    shown: Vec<Row>,
    is_synchronized: bool,
    writes_whole_rows: bool,
}

impl FullScreen {
    /// Makes a writer for a screen of which nothing is known.
    pub fn new(options: super::WriterOptions) -> Self {
        Self {
            is_synchronized: options.is_synchronized,
            writes_whole_rows: options.writes_whole_rows,
            ..Self::default()
        }
    }

    /// Returns the bytes that make the screen show these rows, cut to its size, with the caret where it is to stand.
    pub fn draw(&mut self, rows: &[Row], caret: Option<(usize, u16)>, size: Size) -> Vec<u8> {
        let is_new = self.size != Some(size);
        self.size = Some(size);
        let (width, height) = (usize::from(size.width), usize::from(size.height));
        let rows: Vec<Row> = rows.iter().take(height).map(|row| truncate(row, width)).collect();
        let mut pen = Pen::new(0, 0, true);
        pen.raw(b"\x1b[?25l\x1b[H");
        let before = pen.len();
        let blank = Row::default();
        for idx in 0..height {
            let new = rows.get(idx).unwrap_or(&blank);
            if is_new {
                pen.move_to_row(idx);
                pen.move_to_column(0);
                row_diff::write_difference(&mut pen, &blank, new, width, false);
                if new.width() < width {
                    pen.erase_to_row_end();
                }
            } else if new != self.shown.get(idx).unwrap_or(&blank) {
                pen.move_to_row(idx);
                let old = self.shown.get(idx).unwrap_or(&blank);
                row_diff::write_difference(&mut pen, old, new, width, self.writes_whole_rows);
            }
        }
        let has_changed = pen.len() > before;
        if let Some((row, column)) = caret {
            pen.move_to_row(row.min(height.saturating_sub(1)));
            pen.move_to_column(usize::from(column).min(width.saturating_sub(1)));
            pen.raw(b"\x1b[?25h");
        } else if !has_changed {
            self.shown = rows;
            return Vec::new();
        }
        self.shown = rows;
        super::writer::synchronized(pen.finish(), self.is_synchronized)
    }
}
