//! A small editor for what is typed: several lines, history, completion.

use std::sync::LazyLock;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use regex::Regex;
use toolwright_core::text::is_hidden;
use unicode_width::UnicodeWidthChar as _;

use crate::lines::{DIM, PLAIN, StyledLine, width};
use crate::prompt::{joins, printable};

/// What a key led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Done {
    /// Still typing.
    No,
    /// This is the input.
    Submit(String),
    /// Ctrl-C on an empty line.
    Interrupt,
    /// Ctrl-D on an empty line.
    Leave,
    /// Ctrl-L.
    Redraw,
    /// Ctrl-Z.
    Suspend,
}

/// Completes the word before the cursor: where it begins, and what may stand there.
pub type Complete<'a> = &'a dyn Fn(&str) -> Option<(usize, Vec<String>)>;

#[derive(Debug, Default)]
pub struct Editor {
    text: Vec<char>,
    cursor: usize,
    history: Vec<String>,
    /// The entry of the history that is shown, and what was typed before.
    place: Option<(usize, Vec<char>)>,
    /// What may be completed to, shown below.
    choices: Vec<String>,
}

impl Editor {
    /// Starts with a text.
    pub fn prefill(&mut self, text: &str) {
        self.text = text.chars().collect();
        self.cursor = self.text.len();
        (self.place, self.choices) = (None, Vec::new());
    }

    /// Keeps an input for later.
    pub fn remember(&mut self, input: &str) {
        const MOST: usize = 1000;
        if !input.trim().is_empty() && self.history.last().is_none_or(|last| last != input) {
            self.history.push(input.to_owned());
            if self.history.len() > MOST {
                self.history.remove(0);
            }
        }
    }

    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Text that was pasted: it never submits.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let kept = text.chars().filter(|c| *c == '\n' || *c == '\t' || !c.is_control());
        let before = self.text.len();
        drop(self.text.splice(self.cursor..self.cursor, kept));
        self.cursor += self.text.len() - before;
    }

    pub fn key(&mut self, key: KeyEvent, complete: Complete<'_>) -> Done {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        if key.code != KeyCode::Tab {
            self.choices.clear();
        }
        match key.code {
            KeyCode::Enter if alt || shift || control => self.insert('\n'),
            KeyCode::Enter if self.cursor == self.text.len() && self.text.last() == Some(&'\\') => {
                // As in a shell, a backslash at the end continues the line.
                self.text.pop();
                self.cursor -= 1;
                self.insert('\n');
            }
            KeyCode::Enter => {
                let text: String = std::mem::take(&mut self.text).into_iter().collect();
                (self.cursor, self.place) = (0, None);
                return Done::Submit(text);
            }
            KeyCode::Char('j') if control => self.insert('\n'),
            KeyCode::Char('c') if control && self.text.is_empty() => return Done::Interrupt,
            KeyCode::Char('c') if control => self.prefill(""),
            KeyCode::Char('d') if control && self.text.is_empty() => return Done::Leave,
            KeyCode::Char('d') if control => self.delete(self.cursor, self.right()),
            KeyCode::Char('l') if control => return Done::Redraw,
            KeyCode::Char('z') if control => return Done::Suspend,
            KeyCode::Char('a') if control => self.cursor = self.line_start(),
            KeyCode::Char('e') if control => self.cursor = self.line_end(),
            KeyCode::Char('u') if control => self.delete(self.line_start(), self.cursor),
            KeyCode::Char('k') if control => self.delete(self.cursor, self.line_end()),
            KeyCode::Char('w') if control => self.delete(self.word_left(), self.cursor),
            KeyCode::Char('p') if control => self.recall(-1),
            KeyCode::Char('n') if control => self.recall(1),
            KeyCode::Char('b') if alt => self.cursor = self.word_left(),
            KeyCode::Char('f') if alt => self.cursor = self.word_right(),
            KeyCode::Left if control || alt => self.cursor = self.word_left(),
            KeyCode::Right if control || alt => self.cursor = self.word_right(),
            KeyCode::Left => self.cursor = self.left(),
            KeyCode::Right => self.cursor = self.right(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Backspace if alt => self.delete(self.word_left(), self.cursor),
            KeyCode::Backspace => self.delete(self.left(), self.cursor),
            KeyCode::Delete => self.delete(self.cursor, self.right()),
            KeyCode::Up => self.vertical(-1),
            KeyCode::Down => self.vertical(1),
            KeyCode::Tab => self.complete(complete),
            KeyCode::Char(c) if !control && !alt => self.insert(c),
            _ => {}
        }
        Done::No
    }

    /// The rows to draw, and where the cursor is in them. A prompt that leaves no room stands above.
    pub fn rows(&self, prompt: &str, columns: usize) -> (Vec<StyledLine>, (usize, usize)) {
        if width(prompt) > columns / 2 && width(prompt) > 2 {
            let mut lines = StyledLine::new(DIM, prompt.trim_end()).wrap(columns);
            let (rows, (row, column)) = self.rows("> ", columns);
            let cursor = (lines.len() + row, column);
            lines.extend(rows);
            return (lines, cursor);
        }
        let room = columns.saturating_sub(width(prompt)).max(4);
        let (mut rows, mut cursor) = (Vec::new(), (0, 0));
        let (mut row, mut used) = (String::new(), 0);
        for (at, c) in self.text.iter().enumerate() {
            let shown = if *c == '\n' { String::new() } else { self.shown(at, *c) };
            let wide = width(&shown);
            if used + wide > room {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            if at == self.cursor {
                cursor = (rows.len(), used);
            }
            if *c == '\n' {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push_str(&shown);
            used += wide;
        }
        if self.cursor == self.text.len() {
            cursor = (rows.len(), used);
        }
        rows.push(row);
        let blank = " ".repeat(width(prompt));
        let mut lines: Vec<StyledLine> = rows
            .into_iter()
            .enumerate()
            .map(|(number, row)| {
                StyledLine::new(DIM, if number == 0 { prompt } else { &blank }).and(PLAIN, row)
            })
            .collect();
        if !self.choices.is_empty() {
            let all = self.choices.join("  ");
            lines.push(StyledLine::new(DIM, crate::lines::cut(&all, columns)));
        }
        (lines, (cursor.0, cursor.1 + width(prompt)))
    }

    /// How a character of the text is shown. One that takes no room, or moves the cursor, is shown by its
    /// number.
    fn shown(&self, at: usize, c: char) -> String {
        let before = at.checked_sub(1).and_then(|at| self.text.get(at)).copied();
        match c {
            '\t' => "    ".to_owned(),
            c if joins(before, c, self.text.get(at + 1).copied()) => c.to_string(),
            c => printable(c.encode_utf8(&mut [0; 4])),
        }
    }

    fn insert(&mut self, c: char) {
        self.text.insert(self.cursor, c);
        self.cursor += 1;
    }

    fn delete(&mut self, from: usize, to: usize) {
        let to = to.min(self.text.len());
        if from < to {
            self.text.drain(from..to);
            self.cursor = from;
        }
    }

    /// Where the character before the cursor begins: what a person sees as one may be several of Unicode's.
    fn left(&self) -> usize {
        let begins = |at: &usize| *at == 0 || !self.continues(*at);
        (0..self.cursor).rev().find(begins).unwrap_or(0)
    }

    /// Where the character after the cursor ends.
    fn right(&self) -> usize {
        let next = (self.cursor + 1).min(self.text.len());
        (next..self.text.len()).find(|at| !self.continues(*at)).unwrap_or(self.text.len())
    }

    /// True when what stands there belongs to the character before it: a mark, a joiner and what it joins,
    /// the colour of a skin, the second half of a flag.
    fn continues(&self, at: usize) -> bool {
        let near = |at: Option<usize>| at.and_then(|at| self.text.get(at)).copied();
        let (before, after) = (near(at.checked_sub(1)), near(at.checked_add(1)));
        let (Some(c), Some(last)) = (near(Some(at)), before) else { return false };
        let is_flag = |c: &char| ('\u{1f1e6}'..='\u{1f1ff}').contains(c);
        // Of a row of very many, some may be taken apart.
        let flags = || self.text.iter().take(at).rev().take(64).take_while(|c| is_flag(c)).count();
        match c {
            _ if last == '\n' => false,
            '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' => true,
            c if is_flag(&c) => flags() % 2 == 1,
            _ if last == '\u{200d}' => joins(near(at.checked_sub(2)), last, Some(c)),
            c => joins(before, c, after) || (!is_hidden(c) && (c.width() == Some(0) || is_mark(c))),
        }
    }

    fn line_start(&self) -> usize {
        self.text.iter().take(self.cursor).rposition(|c| *c == '\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let rest = self.text.iter().skip(self.cursor).position(|c| *c == '\n');
        rest.map_or(self.text.len(), |at| self.cursor + at)
    }

    /// True for a letter or a digit, and for what belongs to one.
    fn in_word(&self, at: usize) -> bool {
        /// A letter has fewer parts.
        const LONGEST: usize = 32;
        let begins = (0..=at).rev().take(LONGEST).find(|at| !self.continues(*at)).unwrap_or(at);
        self.text.get(begins).is_some_and(|c| c.is_alphanumeric())
    }

    fn word_left(&self) -> usize {
        let end = (0..self.cursor).rev().find(|at| self.in_word(*at)).map_or(0, |at| at + 1);
        (0..end).rev().find(|at| !self.in_word(*at)).map_or(0, |at| at + 1)
    }

    fn word_right(&self) -> usize {
        let all = self.text.len();
        let start = (self.cursor..all).find(|at| self.in_word(*at)).unwrap_or(all);
        (start..all).find(|at| !self.in_word(*at)).unwrap_or(all)
    }

    /// To the line above or below; beyond the first and the last, into the history.
    fn vertical(&mut self, direction: i32) {
        let (start, end) = (self.line_start(), self.line_end());
        let column = self.cursor - start;
        if direction < 0 && start > 0 {
            self.cursor = start - 1;
            let above = self.line_start();
            self.cursor = (above + column).min(start - 1);
        } else if direction > 0 && end < self.text.len() {
            self.cursor = end + 1;
            self.cursor = (end + 1 + column).min(self.line_end());
        } else {
            self.recall(direction);
        }
        // Not into the middle of a character.
        while self.cursor > 0 && self.continues(self.cursor) {
            self.cursor -= 1;
        }
    }

    fn recall(&mut self, direction: i32) {
        let (at, typed) = match self.place.take() {
            Some((at, typed)) => (at, typed),
            None => (self.history.len(), self.text.clone()),
        };
        let to = if direction < 0 { at.saturating_sub(1) } else { (at + 1).min(self.history.len()) };
        let text = match self.history.get(to) {
            Some(entry) => entry.chars().collect(),
            None => typed.clone(),
        };
        (self.text, self.place) = (text, (to < self.history.len()).then_some((to, typed)));
        self.cursor = self.text.len();
    }

    fn complete(&mut self, complete: Complete<'_>) {
        let before: String = self.text.iter().take(self.cursor).collect();
        let Some((start, found)) = complete(&before) else { return };
        let start = before.get(..start).map_or(0, |text| text.chars().count());
        let typed: String = self.text.iter().take(self.cursor).skip(start).collect();
        let Some(first) = found.first() else { return };
        let common = found.iter().fold(first.as_str(), |common, other| {
            let same =
                common.char_indices().zip(other.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
            let same = same.unwrap_or(common.len().min(other.len()));
            common.get(..same).unwrap_or_default()
        });
        let put = if found.len() == 1 { format!("{first} ") } else { common.to_owned() };
        if put.chars().count() > typed.chars().count() || found.len() == 1 {
            self.delete(start, self.cursor);
            self.cursor = start;
            put.chars().for_each(|c| self.insert(c));
        }
        self.choices = if found.len() > 1 { found } else { Vec::new() };
    }
}

/// True for a sign that is part of the letter before it and takes room of its own, such as the vowels of
/// Indic scripts.
fn is_mark(c: char) -> bool {
    static MARKS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"[\p{gcb=Extend}\p{gcb=SpacingMark}]").ok());
    !c.is_ascii() && MARKS.as_ref().is_some_and(|marks| marks.is_match(c.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut Editor, code: KeyCode, modifiers: KeyModifiers) -> Done {
        let complete = |text: &str| {
            let known = ["/help".to_owned(), "/hello".to_owned(), "/exit".to_owned()];
            let found: Vec<String> = known.into_iter().filter(|name| name.starts_with(text)).collect();
            (!found.is_empty()).then_some((0, found))
        };
        editor.key(KeyEvent::new(code, modifiers), &complete)
    }

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        text.chars().for_each(|c| {
            press(&mut editor, KeyCode::Char(c), KeyModifiers::NONE);
        });
        editor
    }

    #[test]
    fn words_lines_and_history_work_as_in_a_shell() {
        let mut editor = typed("one two three");
        press(&mut editor, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "one two ");
        press(&mut editor, KeyCode::Enter, KeyModifiers::ALT);
        editor.paste("x\r\ny");
        assert_eq!(editor.text(), "one two \nx\ny");
        press(&mut editor, KeyCode::Up, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "one two \n\ny");
        let Done::Submit(first) = press(&mut editor, KeyCode::Enter, KeyModifiers::NONE) else { return };
        editor.remember(&first);
        editor.remember("second");
        press(&mut editor, KeyCode::Char('n'), KeyModifiers::NONE);
        press(&mut editor, KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(editor.text(), "second");
        press(&mut editor, KeyCode::Char('p'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), first);
        press(&mut editor, KeyCode::Char('n'), KeyModifiers::CONTROL);
        press(&mut editor, KeyCode::Down, KeyModifiers::NONE);
        assert_eq!(editor.text(), "n");
    }

    #[test]
    fn completion_goes_as_far_as_it_is_sure() {
        let mut editor = typed("/he");
        press(&mut editor, KeyCode::Tab, KeyModifiers::NONE);
        assert_eq!((editor.text(), editor.choices.len()), ("/hel".to_owned(), 2));
        let mut editor = typed("/ex");
        press(&mut editor, KeyCode::Tab, KeyModifiers::NONE);
        assert_eq!(editor.text(), "/exit ");
    }

    #[test]
    fn long_and_wide_text_wraps_and_the_cursor_follows() {
        let editor = typed("日本語abc");
        let (rows, cursor) = editor.rows("> ", 8);
        assert_eq!(rows.iter().map(StyledLine::text).collect::<Vec<_>>(), ["> 日本語", "  abc"]);
        assert_eq!(cursor, (1, 5));
    }

    #[test]
    fn what_is_seen_as_one_character_is_one() {
        let family = "👨\u{200d}👩\u{200d}👧";
        for one in [
            "e\u{301}",
            "é",
            family,
            "🇩🇪",
            "👍🏽",
            "❤\u{fe0f}",
            "한",
            "\u{1112}\u{1161}\u{11ab}",
            "का",
            "கொ",
            "กำ",
            "কা",
        ] {
            let text = format!("🇫🇷{one}🇮🇹");
            let mut editor = typed(&text);
            let keys = [KeyCode::Left, KeyCode::Left, KeyCode::Right, KeyCode::Backspace];
            keys.into_iter().for_each(|key| drop(press(&mut editor, key, KeyModifiers::NONE)));
            assert_eq!(editor.text(), "🇫🇷🇮🇹", "{one}");
            press(&mut editor, KeyCode::Home, KeyModifiers::NONE);
            press(&mut editor, KeyCode::Delete, KeyModifiers::NONE);
            assert_eq!(editor.text(), "🇮🇹", "{one}");
        }
        // A word is not cut at its marks, and the cursor does not stop inside of a letter.
        let mut editor = typed("एक अक्षर\u{93e}");
        press(&mut editor, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "एक ");
        let mut editor = typed("का\nab");
        for key in [KeyCode::Left, KeyCode::Up, KeyCode::Delete] {
            press(&mut editor, key, KeyModifiers::NONE);
        }
        assert_eq!(editor.text(), "\nab");
        // What cannot be seen is shown by its number, and goes alone.
        let mut editor = typed("a\u{200b}");
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(editor.text(), "a");
        let mut editor = typed("a\nb");
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(editor.text(), "a");
    }

    #[test]
    fn ctrl_c_clears_first_and_interrupts_then() {
        let mut editor = typed("x");
        assert_eq!(press(&mut editor, KeyCode::Char('c'), KeyModifiers::CONTROL), Done::No);
        assert_eq!(press(&mut editor, KeyCode::Char('c'), KeyModifiers::CONTROL), Done::Interrupt);
        assert_eq!(press(&mut editor, KeyCode::Char('d'), KeyModifiers::CONTROL), Done::Leave);
    }
}
