//! The terminal: finished lines go up into the scrollback; below them a few live rows are drawn again and
//! again.

use std::io::Write as _;

use crate::console::Console;
use crate::lines::{Style, StyledLine, wrapped};

/// Where a conversation is shown.
pub struct Screen {
    pub console: Console,
    pub width: usize,
    pub height: usize,
    colours: bool,
    /// False when the output is a file or a pipe: no live rows, no wrapping.
    terminal: bool,
    /// Widths of the live rows on the screen.
    drawn: Vec<usize>,
    /// The live row the cursor is in, and its column there.
    row: usize,
    column: usize,
}

impl Screen {
    pub fn new(console: &Console, terminal: bool) -> Self {
        let (width, height) =
            if terminal { crossterm::terminal::size().unwrap_or((80, 24)) } else { (80, 24) };
        let colours = crate::lines::has_colours(&console.stdout());
        let mut screen = Screen {
            console: console.clone(),
            width: 80,
            height: 24,
            colours,
            terminal,
            drawn: Vec::new(),
            row: 0,
            column: 0,
        };
        screen.resize(width, height);
        screen
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        // One column is left free: a full row leaves the cursor in a place that terminals disagree about.
        self.width = usize::from(width).saturating_sub(1).max(10);
        self.height = usize::from(height).max(4);
    }

    /// Prints finished lines above the live rows, which are gone until they are drawn again.
    pub fn commit(&mut self, lines: &[StyledLine]) {
        if lines.is_empty() {
            return;
        }
        let mut out = self.erased();
        for line in lines {
            let rows = if self.terminal { line.wrap(self.width) } else { vec![line.clone()] };
            for row in rows {
                out.push_str(row.ansi(self.colours).trim_end());
                out.push_str(self.end_of_line());
            }
        }
        self.write(&out);
    }

    /// Prints a finished text above the live rows, broken between words alone: one that is wider than the
    /// screen, such as an address, is left to the terminal, which copies it whole.
    pub fn commit_whole(&mut self, style: Style, text: &str) {
        let mut out = self.erased();
        for row in wrapped(text, self.width, 0).lines() {
            out.push_str(StyledLine::new(style, row).ansi(self.colours).trim_end());
            out.push_str(self.end_of_line());
        }
        self.write(&out);
    }

    /// Draws the live rows; the cursor is put into one of them, or hidden.
    pub fn live(&mut self, lines: &[StyledLine], cursor: Option<(usize, usize)>) {
        if !self.terminal {
            return;
        }
        let mut out = self.erased();
        // More rows than the screen has could not be taken back: those around the cursor are drawn, or the
        // last ones.
        let most = self.height - 1;
        let last = lines.len().saturating_sub(most);
        let skip = cursor.map_or(last, |(row, _)| row.saturating_sub(most / 2).min(last));
        let rows: Vec<&StyledLine> = lines.iter().skip(skip).take(most).collect();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            out.push_str(&row.ansi(self.colours));
        }
        self.drawn = rows.iter().map(|row| row.width()).collect();
        self.row = self.drawn.len().saturating_sub(1);
        self.column = self.drawn.last().copied().unwrap_or_default();
        match cursor.map(|(row, column)| (row.saturating_sub(skip), column)) {
            Some((row, column)) => {
                let up = self.row.saturating_sub(row);
                if up > 0 {
                    out.push_str(&format!("\x1b[{up}A"));
                }
                // What stands before the cursor is written once more: terminals disagree about how wide some
                // signs are.
                out.push('\r');
                if let Some(line) = rows.get(row) {
                    out.push_str(&line.start(column).ansi(self.colours));
                }
                (self.row, self.column) = (row, column);
                out.push_str("\x1b[?25h");
            }
            None => out.push_str("\x1b[?25l"),
        }
        self.write(&out);
    }

    /// Takes the live rows away.
    pub fn clear_live(&mut self) {
        let out = self.erased();
        self.write(&out);
    }

    /// Clears what is seen; the scrollback stays.
    pub fn clear(&mut self) {
        self.drawn.clear();
        self.row = 0;
        if self.terminal {
            self.write("\x1b[2J\x1b[H");
        }
    }

    /// How many pixels a picture may have: three quarters of the window, so that the words around it are seen
    /// too.
    pub fn pixels(&self) -> (usize, usize) {
        let said = crossterm::terminal::window_size().ok().filter(|said| said.width > 0 && said.height > 0);
        // A terminal that does not say has signs of about this size.
        let (width, height) = said.map_or((self.width * 8, self.height * 16), |said| {
            (usize::from(said.width), usize::from(said.height))
        });
        (width, height * 3 / 4)
    }

    /// Asks for a line, where no rows are drawn.
    pub fn prompt(&self, text: &str) {
        self.write(text);
    }

    /// Sends bytes that are not text, such as a picture.
    pub fn raw(&mut self, bytes: &str) {
        let out = self.erased() + bytes + self.end_of_line();
        self.write(&out);
    }

    /// What takes the live rows off the screen. After a resize a row may have become several.
    fn erased(&mut self) -> String {
        if self.drawn.is_empty() {
            return String::new();
        }
        let real = self.width + 1;
        let above: usize = self.drawn.iter().take(self.row).map(|width| width.div_ceil(real).max(1)).sum();
        // A cursor behind the last sign of a full row still stands in that row.
        let above = above + self.column.saturating_sub(1) / real;
        self.drawn.clear();
        self.row = 0;
        let up = if above > 0 { format!("\x1b[{above}A") } else { String::new() };
        format!("{up}\r\x1b[J\x1b[?25h")
    }

    fn end_of_line(&self) -> &'static str {
        if self.terminal { "\r\n" } else { "\n" }
    }

    fn write(&self, text: &str) {
        let mut out = self.console.stdout();
        // A terminal that went away is noticed when the next input is read.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}
