//! Pictures as sixels: six rows of pixels at a time, colour by colour.
//!
//! A picture of few colours keeps them; one of many is dithered into a cube of 216.

use std::collections::BTreeMap;

use super::picture::Pixels;

/// How many colours terminals have room for.
const COLOURS: usize = 256;

/// The sequence that draws the pixels. What is transparent shows what was there.
pub fn encode(pixels: &Pixels) -> String {
    let (palette, numbers) = exact(pixels).unwrap_or_else(|| dithered(pixels));
    let (width, height) = (pixels.width, pixels.height);
    let mut out = format!("\x1bP0;1;0q\"1;1;{width};{height}");
    for (number, colour) in palette.iter().enumerate() {
        let [red, green, blue] = colour.map(|part| (u32::from(part) * 100 + 127) / 255);
        out.push_str(&format!("#{number};2;{red};{green};{blue}"));
    }
    for (place, band) in numbers.chunks(width.max(1) * 6).enumerate() {
        if place > 0 {
            out.push('-');
        }
        let mut rows: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        for (at, number) in band.iter().enumerate() {
            let Some(number) = number else { continue };
            let row = rows.entry(*number).or_insert_with(|| vec![0; width]);
            if let Some(bits) = row.get_mut(at % width) {
                *bits |= 1 << (at / width);
            }
        }
        for (turn, (number, row)) in rows.into_iter().enumerate() {
            if turn > 0 {
                out.push('$');
            }
            out.push_str(&format!("#{number}"));
            repeated(&row, &mut out);
        }
    }
    out + "\x1b\\"
}

/// Writes a row; four and more of the same are counted.
fn repeated(row: &[u8], out: &mut String) {
    for same in row.chunk_by(|a, b| a == b) {
        let sign = char::from(63 + same.first().copied().unwrap_or_default());
        match same.len() {
            count @ 0..4 => out.extend(std::iter::repeat_n(sign, count)),
            count => out.push_str(&format!("!{count}{sign}")),
        }
    }
}

/// Colours, and the number of each pixel's; transparent pixels have none.
type Numbered = (Vec<[u8; 3]>, Vec<Option<u8>>);

/// The picture's own colours, when they are few enough.
fn exact(pixels: &Pixels) -> Option<Numbered> {
    let mut known: BTreeMap<[u8; 3], u8> = BTreeMap::new();
    let mut palette = Vec::new();
    let mut numbers = Vec::with_capacity(pixels.width * pixels.height);
    for pixel in pixels.opaque() {
        let Some(colour) = pixel else {
            numbers.push(None);
            continue;
        };
        let number = match known.get(&colour) {
            Some(number) => *number,
            None if palette.len() == COLOURS => return None,
            None => {
                let number = u8::try_from(palette.len()).ok()?;
                known.insert(colour, number);
                palette.push(colour);
                number
            }
        };
        numbers.push(Some(number));
    }
    Some((palette, numbers))
}

/// A cube of six steps each way; what a pixel is off goes to its neighbours, as Floyd and Steinberg taught.
fn dithered(pixels: &Pixels) -> Numbered {
    let step = |number: u8| number * 51;
    let palette = (0..216).map(|number| [step(number / 36), step(number / 6 % 6), step(number % 6)]);
    let mut numbers = Vec::with_capacity(pixels.width * pixels.height);
    // One pixel more on each side, so that neighbours need no questions.
    let mut here = vec![[0_i32; 3]; pixels.width + 2];
    let mut below = here.clone();
    for (at, pixel) in pixels.opaque().enumerate() {
        let column = at % pixels.width;
        if column == 0 {
            std::mem::swap(&mut here, &mut below);
            below.fill([0; 3]);
        }
        let Some(colour) = pixel else {
            numbers.push(None);
            continue;
        };
        let mut number = 0;
        for (part, value) in colour.into_iter().enumerate() {
            let get = |row: &[[i32; 3]], at: usize| row.get(at).and_then(|off| off.get(part)).copied();
            let wanted = (i32::from(value) + get(&here, column + 1).unwrap_or_default() / 16).clamp(0, 255);
            let chosen = u8::try_from((wanted * 5 + 127) / 255).unwrap_or(5);
            number = number * 6 + chosen;
            let off = wanted - i32::from(step(chosen));
            let add = |row: &mut [[i32; 3]], at: usize, share: i32| {
                if let Some(sum) = row.get_mut(at).and_then(|sums| sums.get_mut(part)) {
                    *sum += off * share;
                }
            };
            add(&mut here, column + 2, 7);
            add(&mut below, column, 3);
            add(&mut below, column + 1, 5);
            add(&mut below, column + 2, 1);
        }
        numbers.push(Some(number));
    }
    (palette.collect(), numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads sixels back as a terminal does; `None` where nothing was drawn.
    fn decode(text: &str) -> Option<(usize, Vec<Option<[u8; 3]>>)> {
        let body = text.strip_prefix("\x1bP0;1;0q\"1;1;")?.strip_suffix("\x1b\\")?;
        let (size, body) = body.split_at(body.find('#')?);
        let (width, height) = size.split_once(';')?;
        let (width, height): (usize, usize) = (width.parse().ok()?, height.parse().ok()?);
        let mut colours: BTreeMap<u32, [u8; 3]> = BTreeMap::new();
        let mut canvas = vec![None; width * height];
        let (mut colour, mut x, mut top, mut count) = ([0; 3], 0, 0, 1);
        let mut rest = body;
        while let Some(sign) = rest.chars().next() {
            rest = rest.get(1..)?;
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').len();
            let numbers: Vec<u32> = rest.get(..digits)?.split(';').filter_map(|n| n.parse().ok()).collect();
            rest = rest.get(digits..)?;
            match (sign, numbers.as_slice()) {
                ('#', [number, 2, parts @ ..]) => {
                    let parts: Vec<u8> =
                        parts.iter().filter_map(|part| u8::try_from(*part * 255 / 100).ok()).collect();
                    colours.insert(*number, parts.try_into().ok()?);
                }
                ('#', [number]) => colour = *colours.get(number)?,
                ('!', [times]) => count = *times as usize,
                ('$', []) => x = 0,
                ('-', []) => (x, top) = (0, top + 6),
                ('?'..='~', []) => {
                    let bits = sign as u8 - 63;
                    for (column, row) in (x..x + count).flat_map(|x| (0..6).map(move |row| (x, row))) {
                        if bits & (1 << row) != 0 {
                            *canvas.get_mut((top + row) * width + column)? = Some(colour);
                        }
                    }
                    (x, count) = (x + count, 1);
                }
                _ => return None,
            }
        }
        Some((width, canvas))
    }

    /// A picture with a pixel for each place.
    fn painted(width: usize, height: usize, pixel: impl Fn(usize, usize) -> [u8; 4]) -> Pixels {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Pixels { width, height, rgba: places.flat_map(|(x, y)| pixel(x, y)).collect() }
    }

    #[test]
    fn few_colours_come_back_as_they_were() {
        let alpha = |x, y| if x == y { 0 } else { 255 };
        let flag = painted(13, 8, |x, y| {
            [if x < 7 { 255 } else { 0 }, if y < 3 { 51 } else { 204 }, 0, alpha(x, y)]
        });
        let (width, canvas) = decode(&encode(&flag)).unwrap_or_default();
        assert_eq!((width, canvas), (13, flag.opaque().collect()));
    }

    #[test]
    fn many_colours_are_right_on_average() {
        let clouds = painted(64, 48, |x, y| [x as u8 * 4, y as u8 * 5, (x + y) as u8, 255]);
        let (_, canvas) = decode(&encode(&clouds)).unwrap_or_default();
        assert_eq!(canvas.len(), 64 * 48);
        for part in 0..3 {
            let mean = |pixels: &[Option<[u8; 3]>]| {
                let sum: u64 = pixels
                    .iter()
                    .flatten()
                    .filter_map(|pixel| pixel.get(part))
                    .map(|part| u64::from(*part))
                    .sum();
                sum / 3072
            };
            let (was, is) = (mean(&clouds.opaque().collect::<Vec<_>>()), mean(&canvas));
            assert!(was.abs_diff(is) <= 3, "{was} became {is}");
        }
    }

    #[test]
    fn equal_columns_are_counted() {
        let bar = painted(100, 1, |_, _| [255, 255, 255, 255]);
        assert_eq!(encode(&bar), "\x1bP0;1;0q\"1;1;100;1#0;2;100;100;100#0!100@\x1b\\");
    }
}
