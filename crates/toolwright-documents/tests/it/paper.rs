//! Writes PDF files: pages with text at given places, lines, boxes and pictures.

use std::fmt::Write as _;

/// Widths of Helvetica's letters from the space on, in thousandths of the size.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

pub(crate) struct Paper {
    pages: Vec<(String, String)>,
    images: Vec<(u32, u32, Vec<u8>)>,
    catalog: String,
    objects: Vec<String>,
}

impl Paper {
    pub(crate) fn new() -> Self {
        Paper { pages: Vec::new(), images: Vec::new(), catalog: String::new(), objects: Vec::new() }
    }

    /// Begins a page; what follows is drawn on it.
    pub(crate) fn page(&mut self) -> &mut Self {
        self.page_with("")
    }

    /// Begins a page with further entries, such as `/Rotate 90`.
    pub(crate) fn page_with(&mut self, entries: &str) -> &mut Self {
        self.pages.push((String::new(), entries.to_owned()));
        self
    }

    pub(crate) fn raw(&mut self, operators: &str) -> &mut Self {
        let page = &mut self.pages.last_mut().expect("a page").0;
        page.push_str(operators);
        page.push('\n');
        self
    }

    /// A line of text with its baseline at a height counted from the bottom.
    pub(crate) fn text(&mut self, x: f32, y: f32, size: f32, text: &str) -> &mut Self {
        self.font("F1", x, y, size, text)
    }

    pub(crate) fn bold(&mut self, x: f32, y: f32, size: f32, text: &str) -> &mut Self {
        self.font("F2", x, y, size, text)
    }

    fn font(&mut self, font: &str, x: f32, y: f32, size: f32, text: &str) -> &mut Self {
        let escaped = text.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
        self.raw(&format!("BT /{font} {size} Tf {x} {y} Td ({escaped}) Tj ET"))
    }

    /// Lines of a column, filled with words; returns the height below them.
    pub(crate) fn column(&mut self, x: f32, y: f32, width: f32, size: f32, text: &str) -> f32 {
        let mut at = y;
        for line in wrap(text, width, size) {
            self.text(x, at, size, &line);
            at -= size * 1.2;
        }
        at
    }

    pub(crate) fn line(&mut self, x0: f32, y0: f32, x1: f32, y1: f32) -> &mut Self {
        self.raw(&format!("0.5 w {x0} {y0} m {x1} {y1} l S"))
    }

    pub(crate) fn fill(&mut self, color: &str, x: f32, y: f32, width: f32, height: f32) -> &mut Self {
        self.raw(&format!("{color} rg {x} {y} {width} {height} re f 0 0 0 rg"))
    }

    /// A picture of one color.
    pub(crate) fn image(&mut self, x: f32, y: f32, width: f32, height: f32) -> &mut Self {
        self.image_of((40, 30), x, y, width, height)
    }

    /// A picture of so many pixels.
    pub(crate) fn image_of(
        &mut self,
        pixels: (u32, u32),
        x: f32,
        y: f32,
        width: f32,
        height: f32,
    ) -> &mut Self {
        let pixel = [200, (self.images.len() * 10) as u8, 30];
        self.images.push((pixels.0, pixels.1, pixel.repeat((pixels.0 * pixels.1) as usize)));
        let name = self.images.len() - 1;
        self.raw(&format!("q {width} 0 0 {height} {x} {y} cm /I{name} Do Q"))
    }

    /// Entries of the catalog, and objects numbered from 100 on.
    pub(crate) fn catalog(&mut self, entries: &str, objects: &[&str]) -> &mut Self {
        self.catalog = entries.to_owned();
        self.objects = objects.iter().map(|object| (*object).to_owned()).collect();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out: Vec<u8> = b"%PDF-1.7\n".to_vec();
        let mut places: Vec<(usize, usize)> = Vec::new();
        let mut put = |out: &mut Vec<u8>, number: usize, body: &[u8]| {
            places.push((number, out.len()));
            out.extend(format!("{number} 0 obj\n").bytes());
            out.extend(body);
            out.extend(b"\nendobj\n");
        };
        let first_page = 1000;
        let kids: String = (0..self.pages.len()).map(|at| format!("{} 0 R ", first_page + at * 2)).collect();
        put(&mut out, 1, format!("<< /Type /Catalog /Pages 2 0 R {} >>", self.catalog).as_bytes());
        put(&mut out, 2, format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", self.pages.len()).as_bytes());
        put(
            &mut out,
            3,
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        );
        put(
            &mut out,
            4,
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
        );
        for (at, (width, height, pixels)) in self.images.iter().enumerate() {
            let head = format!(
                "<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceRGB \
                 /BitsPerComponent 8 /Length {} >>\nstream\n",
                pixels.len()
            );
            let body = [head.as_bytes(), pixels, b"\nendstream"].concat();
            put(&mut out, 10 + at, &body);
        }
        for (at, object) in self.objects.iter().enumerate() {
            put(&mut out, 100 + at, object.as_bytes());
        }
        let images: String = (0..self.images.len()).map(|at| format!("/I{at} {} 0 R ", 10 + at)).collect();
        for (at, (content, entries)) in self.pages.iter().enumerate() {
            let number = first_page + at * 2;
            let page = format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R /Resources << /Font << /F1 3 0 R \
                 /F2 4 0 R >> /XObject << {images} >> >> {entries} >>",
                number + 1
            );
            put(&mut out, number, page.as_bytes());
            let body = format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len());
            put(&mut out, number + 1, body.as_bytes());
        }
        let table = out.len();
        let mut xref = String::from("xref\n0 1\n0000000000 65535 f \n");
        let most = places.iter().map(|(number, _)| *number).max().unwrap_or(0);
        for (number, place) in &places {
            let _ = write!(xref, "{number} 1\n{place:010} 00000 n \n");
        }
        let _ = write!(xref, "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", most + 1);
        out.extend(xref.bytes());
        out
    }
}

pub(crate) fn width(text: &str, size: f32) -> f32 {
    let units: u32 = text.bytes().map(|byte| u32::from(WIDTHS[usize::from(byte.clamp(32, 126)) - 32])).sum();
    units as f32 * size / 1000.0
}

/// Breaks a text into lines.
pub(crate) fn wrap(text: &str, most: f32, size: f32) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("a line");
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&longer, size) > most && !line.is_empty() {
            lines.push(word.to_owned());
        } else {
            *line = longer;
        }
    }
    lines
}
