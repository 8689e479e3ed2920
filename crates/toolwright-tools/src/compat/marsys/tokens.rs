//! How many tokens a picture costs, as the vendors count them.

/// The sides of a square tile, and what one costs.
fn tiles(width: u64, height: u64, side: u64) -> u64 {
    width.div_ceil(side) * height.div_ceil(side)
}

/// A side made smaller by the ratio of `to` to `from`, cut to whole pixels.
fn scaled(side: u64, to: u64, from: u64) -> u64 {
    (side as f64 * (to as f64 / from as f64)) as u64
}

/// The tokens of a picture for a vendor: `openai`, `anthropic`, `google`, `xai`, or anything else for a
/// middle way. With low detail some look at a small version.
pub(super) fn of_picture(width: u32, height: u32, vendor: &str, low: bool) -> u64 {
    let (mut width, mut height) = (u64::from(width).max(1), u64::from(height).max(1));
    match vendor {
        "openai" if low => 85,
        "openai" => {
            let longest = width.max(height);
            if longest > 2048 {
                (width, height) = (scaled(width, 2048, longest), scaled(height, 2048, longest));
            }
            let shortest = width.min(height).max(1);
            if shortest > 768 {
                (width, height) = (scaled(width, 768, shortest), scaled(height, 768, shortest));
            }
            85 + 170 * tiles(width, height, 512)
        }
        "anthropic" => {
            // The long side is set, since the ratio of two numbers may come out a pixel short.
            let longest = width.max(height);
            if longest > 1568 && width > height {
                (width, height) = (1568, scaled(height, 1568, longest));
            } else if longest > 1568 {
                (width, height) = (scaled(width, 1568, longest), 1568);
            }
            (width * height / 750).max(1)
        }
        "google" if width <= 384 && height <= 384 => 258,
        "google" => 258 * tiles(width, height, 768),
        "xai" if low => 512,
        "xai" => (tiles(width, height, 448).min(6) + 1) * 256,
        _ => (width * height / 750).max(256),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_cost_what_the_vendors_say() {
        // Width, height, then openai, anthropic, google, xai and the middle way.
        for (width, height, wanted) in [
            (100, 100, [255, 13, 258, 512, 256]),
            (385, 384, [255, 197, 258, 512, 256]),
            (512, 512, [255, 349, 258, 1280, 349]),
            (800, 600, [765, 640, 516, 1280, 640]),
            (1024, 1024, [765, 1398, 1032, 1792, 1398]),
            (1920, 1080, [1105, 1843, 1548, 1792, 2764]),
            (2048, 2048, [765, 3278, 2322, 1792, 5592]),
            (4000, 1000, [765, 819, 3096, 1792, 5333]),
            (8000, 8000, [765, 3278, 31218, 1792, 85333]),
            (5930, 4117, [1105, 2274, 12384, 1792, 32551]),
            (3000, 2999, [765, 3276, 4128, 1792, 11996]),
            (1569, 1, [765, 1, 774, 1280, 256]),
            (1, 1569, [765, 1, 774, 1280, 256]),
        ] {
            let vendors = ["openai", "anthropic", "google", "xai", "generic"];
            let got = vendors.map(|vendor| of_picture(width, height, vendor, false));
            assert_eq!(got, wanted, "{width}x{height}");
            assert_eq!(
                (of_picture(width, height, "openai", true), of_picture(width, height, "xai", true)),
                (85, 512)
            );
        }
        assert_eq!(of_picture(0, 0, "anthropic", false), 1);
    }
}
