//! Making a picture smaller: each new pixel is the average of the area it covers.
//!
//! For shrinking this is what sharper filters come close to, and it is little code: a general resampler for every
//! kind of pixel costs minutes of build time. Colours are averaged by how opaque they are, so that what cannot be
//! seen does not show at edges.

use image::{Rgba, RgbaImage};

/// Returns the picture in a smaller size; neither edge may be zero or grow.
pub(super) fn shrink(source: &RgbaImage, width: u32, height: u32) -> RgbaImage {
    let columns = spans(source.width(), width);
    let rows = spans(source.height(), height);
    let mut target = RgbaImage::new(width, height);
    let mut sums = vec![[0.0_f32; 4]; width as usize];
    for (y, row) in rows.iter().enumerate() {
        sums.fill([0.0; 4]);
        for (source_y, weight) in row.weights() {
            add_row(source, source_y, weight, &columns, &mut sums);
        }
        for (x, sum) in sums.iter().enumerate() {
            target.put_pixel(x as u32, y as u32, to_pixel(*sum));
        }
    }
    target
}

/// The source pixels along one edge that a new pixel covers, the first and last in part.
struct Span {
    begin: f64,
    end: f64,
}

impl Span {
    /// Returns each source index with its share; shares add up to one.
    fn weights(&self) -> impl Iterator<Item = (u32, f32)> {
        let (begin, end) = (self.begin, self.end);
        let last = (end.ceil() as u32).max(begin as u32 + 1);
        (begin as u32..last).map(move |idx| {
            let covered = end.min(f64::from(idx) + 1.0) - begin.max(f64::from(idx));
            (idx, (covered / (end - begin)) as f32)
        })
    }
}

fn spans(source: u32, target: u32) -> Vec<Span> {
    let step = f64::from(source) / f64::from(target);
    (0..target)
        .map(|idx| Span {
            begin: f64::from(idx) * step,
            end: (f64::from(idx + 1) * step).min(f64::from(source)),
        })
        .collect()
}

/// Adds a source row's share to the sums of a target row, in colours weighted by opacity.
fn add_row(source: &RgbaImage, y: u32, row_weight: f32, columns: &[Span], sums: &mut [[f32; 4]]) {
    let start = y as usize * source.width() as usize * 4;
    let row = &source.as_raw()[start..start + source.width() as usize * 4];
    for (span, sum) in columns.iter().zip(sums) {
        for (x, weight) in span.weights() {
            let [red, green, blue, alpha] = pixel_at(row, x as usize);
            let share = weight * row_weight * f32::from(alpha);
            sum[0] += share * f32::from(red);
            sum[1] += share * f32::from(green);
            sum[2] += share * f32::from(blue);
            sum[3] += share;
        }
    }
}

fn pixel_at(row: &[u8], x: usize) -> [u8; 4] {
    match row.get(x * 4..x * 4 + 4) {
        Some([red, green, blue, alpha]) => [*red, *green, *blue, *alpha],
        _ => [0; 4],
    }
}

fn to_pixel([red, green, blue, alpha]: [f32; 4]) -> Rgba<u8> {
    let colour = |sum: f32| if alpha > 0.0 { (sum / alpha).round().clamp(0.0, 255.0) as u8 } else { 0 };
    Rgba([colour(red), colour(green), colour(blue), alpha.round().clamp(0.0, 255.0) as u8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32, at: impl Fn(u32, u32) -> [u8; 4]) -> RgbaImage {
        RgbaImage::from_fn(width, height, |x, y| Rgba(at(x, y)))
    }

    #[test]
    fn areas_are_averaged() {
        let grey = |level: u8| [level, level, level, 255];
        let chess = picture(4, 4, |x, y| grey(if (x + y) % 2 == 0 { 0 } else { 200 }));
        assert!(shrink(&chess, 2, 2).pixels().all(|pixel| pixel.0 == grey(100)));
        // Three pixels into two: the middle one is shared.
        let ramp = picture(3, 1, |x, _| grey([0, 90, 240][x as usize]));
        let halves: Vec<u8> = shrink(&ramp, 2, 1).pixels().map(|pixel| pixel.0[0]).collect();
        assert_eq!(halves, [30, 190]);
    }

    #[test]
    fn a_plain_colour_stays_what_it_is_in_any_size() {
        let plain = picture(97, 61, |_, _| [12, 34, 56, 255]);
        for (width, height) in [(97, 61), (96, 60), (50, 1), (1, 1), (33, 59)] {
            let small = shrink(&plain, width, height);
            assert_eq!(small.dimensions(), (width, height));
            assert!(small.pixels().all(|pixel| pixel.0 == [12, 34, 56, 255]), "{width} x {height}");
        }
    }

    #[test]
    fn transparent_pixels_do_not_tint_their_neighbours() {
        let half = picture(2, 1, |x, _| if x == 0 { [255, 0, 0, 255] } else { [0, 255, 0, 0] });
        assert_eq!(shrink(&half, 1, 1).get_pixel(0, 0).0, [255, 0, 0, 128]);
        let nothing = picture(2, 2, |_, _| [9, 9, 9, 0]);
        assert_eq!(shrink(&nothing, 1, 1).get_pixel(0, 0).0, [0, 0, 0, 0]);
    }
}
