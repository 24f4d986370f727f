//! How far the wheel of the mouse scrolls.

use std::time::Duration;

/// A step of the wheel by this many rows is what most programs do.
const ROWS_A_STEP: u32 = 3;
/// Steps that come faster than this make the next ones longer.
const FAST: Duration = Duration::from_millis(40);
/// After this long the wheel begins anew.
const PAUSE: Duration = Duration::from_millis(200);
/// By so much of a step each fast one grows, in hundredths, and up to so much.
const GROWTH: u32 = 35;
const MOST_GROWTH: u32 = 500;

/// The wheel, with what is left of a row, in hundredths.
#[derive(Debug, Default)]
pub(crate) struct Wheel {
    last: Option<Duration>,
    growth: u32,
    rest: u32,
}

/// How it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WheelSettings {
    /// Rows for a step, in hundredths; none where nobody has said it.
    pub(crate) speed: Option<u32>,
    /// Whether fast steps are longer.
    pub(crate) accelerates: bool,
}

impl Wheel {
    /// Takes a step of the wheel and returns by how many rows it scrolls.
    pub(crate) fn step(&mut self, now: Duration, settings: WheelSettings) -> usize {
        let since = self.last.replace(now).map(|last| now.saturating_sub(last));
        self.growth = match since {
            Some(since) if since <= FAST && settings.accelerates => (self.growth + GROWTH).min(MOST_GROWTH),
            Some(since) if since <= PAUSE => self.growth,
            _ => 0,
        };
        if since.is_none_or(|since| since > PAUSE) {
            self.rest = 0;
        }
        let speed = settings.speed.unwrap_or(ROWS_A_STEP * 100);
        let hundredths = self.rest + speed + speed * self.growth / 100;
        self.rest = hundredths % 100;
        usize::try_from(hundredths / 100).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(speed: Option<u32>, accelerates: bool, pause: u64, n: u64) -> Vec<usize> {
        let mut wheel = Wheel::default();
        let settings = WheelSettings { speed, accelerates };
        (0..n).map(|idx| wheel.step(Duration::from_millis(1_000 + idx * pause), settings)).collect()
    }

    #[test]
    fn slow_steps_are_alike_and_fast_ones_grow_up_to_a_limit() {
        assert_eq!(steps(None, true, 300, 3), [3, 3, 3]);
        let fast = steps(None, true, 10, 40);
        assert!(fast.is_sorted() && fast[0] == 3 && fast[39] == 18, "{fast:?}");
        assert_eq!(steps(None, false, 10, 3), [3, 3, 3], "without acceleration");
    }

    #[test]
    fn parts_of_a_row_add_up() {
        assert_eq!(steps(Some(25), false, 100, 8), [0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(steps(Some(150), false, 100, 4), [1, 2, 1, 2]);
    }
}
