//! Two spaces of coordinates, and the one place where they are converted: pixels of the picture that a model
//! sees, and pixels of the screen.

use toolwright_core::ToolError;

/// The longest side of a picture that no vendor makes smaller.
const LONGEST: u32 = 1568;
/// The most patches of 28 by 28 pixels of such a picture.
const MOST_PATCHES: u32 = 1568;
const PATCH: u32 = 28;

/// A width and a height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// A place in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) x: i32,
    pub(crate) y: i32,
}

/// The conversion between a model's picture and a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) picture: Size,
    pub(crate) screen: Size,
}

impl Scale {
    /// The scale of a screen: as it is, or as much smaller as it must be.
    pub(crate) fn of_screen(screen: Size) -> Scale {
        Scale { picture: fitted(screen, LONGEST, MOST_PATCHES), screen }
    }

    /// A place of the picture on the screen: the middle of what the pixel shows.
    pub(crate) fn to_screen(self, place: Point) -> Result<Point, ToolError> {
        let Size { width, height } = self.picture;
        let inside = |at: i32, side: u32| u32::try_from(at).is_ok_and(|at| at < side);
        if !inside(place.x, width) || !inside(place.y, height) {
            return Err(ToolError::invalid(format!(
                "coordinate [{}, {}] is outside of the screen, which is {width} x {height}",
                place.x, place.y
            )));
        }
        Ok(Point {
            x: convert(place.x, width, self.screen.width),
            y: convert(place.y, height, self.screen.height),
        })
    }

    /// A place of the screen in the picture.
    pub(crate) fn to_picture(self, place: Point) -> Point {
        Point {
            x: convert(place.x, self.screen.width, self.picture.width),
            y: convert(place.y, self.screen.height, self.picture.height),
        }
    }

    /// The rectangle of the screen that a region `[x0, y0, x1, y1]` of the picture shows.
    pub(crate) fn region(self, region: [i32; 4]) -> Result<(Point, Size), ToolError> {
        let [x0, y0, x1, y1] = region.map(i64::from);
        let Size { width, height } = self.picture;
        if x0 < 0 || y0 < 0 || x1 <= x0 || y1 <= y0 || x1 > i64::from(width) || y1 > i64::from(height) {
            return Err(ToolError::invalid(format!(
                "region [{x0}, {y0}, {x1}, {y1}] must be [x0, y0, x1, y1] inside of the screen, which is {width} x {height}"
            )));
        }
        let edge = |at: i64, from: u32, to: u32, up: bool| {
            let scaled = at * i64::from(to);
            let at = scaled.div_euclid(i64::from(from)) + i64::from(up && scaled % i64::from(from) != 0);
            u32::try_from(at).unwrap_or_default().min(to)
        };
        let (left, right) =
            (edge(x0, width, self.screen.width, false), edge(x1, width, self.screen.width, true));
        let (top, bottom) =
            (edge(y0, height, self.screen.height, false), edge(y1, height, self.screen.height, true));
        let place =
            Point { x: i32::try_from(left).unwrap_or_default(), y: i32::try_from(top).unwrap_or_default() };
        Ok((place, Size { width: (right - left).max(1), height: (bottom - top).max(1) }))
    }
}

/// The middle of pixel `at` of a line of `from` pixels, on a line of `to` pixels.
fn convert(at: i32, from: u32, to: u32) -> i32 {
    let last = i64::from(to) - 1;
    let at = (2 * i64::from(at) + 1) * i64::from(to) / (2 * i64::from(from.max(1)));
    i32::try_from(at.clamp(0, last.max(0))).unwrap_or_default()
}

/// The largest size of the same shape with no side over `longest` and at most `patches` patches. This is how
/// Anthropic's API scales pictures; one that it would scale makes clicks drift.
pub(crate) fn fitted(size: Size, longest: u32, patches: u32) -> Size {
    let (long, short) = (size.width.max(size.height), size.width.min(size.height));
    let fits = |long: u32, short: u32| {
        long <= longest && long.div_ceil(PATCH).saturating_mul(short.div_ceil(PATCH)) <= patches
    };
    if long == 0 || fits(long, short) {
        return size;
    }
    let side = |now: u32| half_to_even(u64::from(now) * u64::from(short), u64::from(long)).max(1);
    let best = (1..=long.min(longest)).rev().find(|now| fits(*now, side(*now))).unwrap_or(1);
    match size.width >= size.height {
        true => Size { width: best, height: side(best) },
        false => Size { width: side(best), height: best },
    }
}

/// The size of a part of the screen that is shown as large as it may be.
pub(crate) fn enlarged(part: Size, budget: Size) -> Size {
    let by_width =
        u64::from(budget.width) * u64::from(part.height) <= u64::from(budget.height) * u64::from(part.width);
    let side = |by: u32, own: u32, other: u32| {
        half_to_even(u64::from(by) * u64::from(other), u64::from(own.max(1))).max(1)
    };
    match by_width {
        true => Size { width: budget.width, height: side(budget.width, part.width, part.height) },
        false => Size { width: side(budget.height, part.height, part.width), height: budget.height },
    }
}

fn half_to_even(number: u64, by: u64) -> u32 {
    let (whole, rest) = (number / by, number % by);
    let up = 2 * rest > by || (2 * rest == by && whole % 2 == 1);
    u32::try_from(whole + u64::from(up)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    #[test]
    fn pictures_are_as_large_as_the_published_table_says() {
        for (screen, longest, patches, picture) in [
            (size(1920, 1080), 1568, 1568, size(1456, 819)),
            (size(1075, 1520), 1568, 1568, size(924, 1307)),
            (size(3840, 2160), 2576, 4784, size(2576, 1449)),
            (size(1280, 800), 1568, 1568, size(1280, 800)),
            (size(1024, 768), 1568, 1568, size(1024, 768)),
            (size(10_000, 10), 1568, 1568, size(1568, 2)),
        ] {
            assert_eq!(fitted(screen, longest, patches), picture);
        }
    }

    /// A small generator, so that sizes are the same in each run.
    fn numbers() -> impl FnMut(u32) -> u32 {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            u32::try_from(state % u64::from(below)).unwrap()
        }
    }

    #[test]
    fn a_place_comes_back_from_the_screen_within_a_pixel() {
        let mut number = numbers();
        for _ in 0..10_000 {
            let screen = size(1 + number(8000), 1 + number(8000));
            let scale = Scale::of_screen(screen);
            let place = Point {
                x: i32::try_from(number(scale.picture.width)).unwrap(),
                y: i32::try_from(number(scale.picture.height)).unwrap(),
            };
            let there = scale.to_screen(place).unwrap();
            assert!(there.x < screen.width as i32 && there.y < screen.height as i32, "{scale:?} {place:?}");
            let back = scale.to_picture(there);
            assert!(
                (back.x - place.x).abs() <= 1 && (back.y - place.y).abs() <= 1,
                "{scale:?} {place:?} {back:?}"
            );
        }
    }

    #[test]
    fn places_outside_are_errors_that_name_the_size() {
        let scale = Scale::of_screen(size(1920, 1080));
        for (x, y) in [(-1, 0), (0, -1), (1456, 0), (0, 819), (i32::MAX, i32::MIN)] {
            let error = scale.to_screen(Point { x, y }).unwrap_err();
            assert!(error.message().contains("1456 x 819"), "{error}");
        }
        assert_eq!(scale.to_screen(Point { x: 1455, y: 818 }).unwrap(), Point { x: 1919, y: 1079 });
        assert!(scale.region([0, 0, 0, 10]).is_err());
        assert!(scale.region([0, 0, 1457, 10]).is_err());
        let (place, part) = scale.region([0, 0, 1456, 819]).unwrap();
        assert_eq!((place, part), (Point { x: 0, y: 0 }, size(1920, 1080)));
        assert_eq!(enlarged(size(100, 50), size(1280, 800)), size(1280, 640));
        assert_eq!(enlarged(size(50, 100), size(1280, 800)), size(400, 800));
    }
}
