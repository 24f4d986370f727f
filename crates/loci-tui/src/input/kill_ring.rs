//! Text that was killed, to be yanked again.

/// No more is kept.
const LIMIT: usize = 60;

/// Killed texts, the latest last.
#[derive(Debug, Clone, Default)]
pub(super) struct KillRing {
    texts: Vec<String>,
    /// Which one was yanked last, counted from the latest.
    turn: usize,
}

/// At which end of the last kill a further one belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillSide {
    Before,
    Behind,
}

impl KillRing {
    /// Keeps a killed text; `joins` puts it to the last one, since nothing happened between.
    pub(super) fn kill(&mut self, text: &str, side: KillSide, joins: bool) {
        if text.is_empty() {
            return;
        }
        self.turn = 0;
        match self.texts.last_mut() {
            Some(last) if joins && side == KillSide::Behind => last.push_str(text),
            Some(last) if joins => last.insert_str(0, text),
            _ => {
                self.texts.push(text.to_owned());
                if self.texts.len() > LIMIT {
                    self.texts.remove(0);
                }
            }
        }
    }

    /// Tells whether a character is in any of them.
    pub(super) fn contains(&self, char: char) -> bool {
        self.texts.iter().any(|text| text.contains(char))
    }

    /// Returns the latest text.
    pub(super) fn yank(&mut self) -> Option<String> {
        self.turn = 0;
        self.texts.last().cloned()
    }

    /// Returns the one before the text that was yanked last, the latest behind the oldest.
    pub(super) fn yank_earlier(&mut self) -> Option<String> {
        self.turn = (self.turn + 1) % self.texts.len().max(1);
        self.texts.iter().rev().nth(self.turn).cloned()
    }
}
