//! Typing any text on any layout. Characters that the layout has are typed by its keys; others are mapped to
//! spare key codes first.
//!
//! A key code is not mapped again until programs have had time to read what was typed with it: they look up
//! the character of a key when they come to it, and by then it would be another one.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use toolwright_core::ToolError;
use x11rb_protocol::protocol::xproto::{ChangeKeyboardMappingRequest, GetKeyboardMappingRequest};

use crate::display::{Display, PressedInput, SettleTimes};
use crate::keys::{CAPS_LOCK, NO_SYMBOL, SHIFT, of_char};
use crate::x11::{XError, lock};

/// The longest text of one call.
const MAX_TEXT: usize = 50_000;
/// After so many keys the server has to have handled them before more are sent.
const KEYS_AT_ONCE: usize = 50;
/// How long a spare key code stays as it is after it was used: until the program has drawn what was typed,
/// where it draws anything.
const REUSE: SettleTimes = SettleTimes {
    first: Duration::from_secs(2),
    quiet: Duration::from_millis(200),
    longest: Duration::from_secs(4),
};
/// The state of modifiers in which letters change their case.
const LOCKED: u16 = 2;
/// A symbol of the keypad is the same character, and depends on another lock.
const KEYPAD: std::ops::RangeInclusive<u32> = 0xff80..=0xffbd;

/// What is known about a keyboard between calls.
#[derive(Default)]
pub(crate) struct Keyboard {
    /// The mapping, and the count of changes when it was read.
    mapping: Option<(u64, Mapping)>,
    /// Spare key codes that we mapped, and when they were last used.
    ours: HashMap<u8, Instant>,
    /// How much was drawn when keys were last typed.
    drawn: Option<u64>,
}

/// Which symbols the key codes have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    first: u8,
    columns: usize,
    symbols: Vec<u32>,
}

/// How a symbol is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stroke {
    code: u8,
    shifted: bool,
}

impl Mapping {
    fn rows(&self) -> impl Iterator<Item = (u8, &[u32])> {
        (self.first..=u8::MAX).zip(self.symbols.chunks(self.columns.max(1)))
    }

    /// The key of a symbol in the layout of that number; plain if it can be.
    fn find(&self, symbol: u32, group: usize) -> Option<Stroke> {
        let mut shifted = None;
        for (code, row) in self.rows() {
            let at = |column: usize| row.get(2 * group + column).copied().unwrap_or(NO_SYMBOL);
            let (plain, mut upper) = (at(0), at(1));
            if KEYPAD.contains(&plain) || KEYPAD.contains(&upper) {
                if symbol == plain && KEYPAD.contains(&symbol) {
                    return Some(Stroke { code, shifted: false });
                }
                continue;
            }
            // X takes a lone letter as a pair.
            if upper == NO_SYMBOL && (0x61..=0x7a).contains(&plain) {
                upper = plain - 0x20;
            }
            if plain == symbol {
                return Some(Stroke { code, shifted: false });
            }
            if upper == symbol {
                shifted = shifted.or(Some(Stroke { code, shifted: true }));
            }
        }
        shifted
    }

    fn is_spare(&self, code: u8) -> bool {
        let row = self.rows().find(|(known, _)| *known == code);
        row.is_some_and(|(_, row)| row.iter().all(|symbol| *symbol == NO_SYMBOL))
    }

    fn spare(&self) -> Vec<u8> {
        self.rows()
            .filter(|(_, row)| row.iter().all(|symbol| *symbol == NO_SYMBOL))
            .map(|(code, _)| code)
            .collect()
    }
}

impl Display {
    /// Types a text.
    pub(crate) async fn type_text(&self, text: &str) -> Result<(), ToolError> {
        let text = text.replace("\r\n", "\n");
        let length = text.chars().count();
        if length > MAX_TEXT {
            return Err(ToolError::invalid(format!(
                "`text` has {length} characters; {MAX_TEXT} can be typed"
            )));
        }
        let unknown = |letter: char| {
            ToolError::invalid(format!("`text` has the control character {}", letter.escape_unicode()))
                .hint("use `key` for keys")
        };
        let symbols: Result<Vec<u32>, ToolError> =
            text.chars().map(|letter| of_char(letter).ok_or_else(|| unknown(letter))).collect();
        let symbols = symbols?;
        let (_, state) = self.pointer().await?;
        let group = usize::from((state >> 13) & 3);
        let locked = state & LOCKED != 0;
        let lock_key = if locked { self.stroke(CAPS_LOCK, group).await? } else { None };
        if let Some(key) = lock_key {
            self.tap(key.code);
        }
        let typed = self.type_symbols(&symbols, group).await;
        if let Some(key) = lock_key {
            self.tap(key.code);
        }
        typed?;
        self.sync().await?;
        Ok(())
    }

    async fn type_symbols(&self, mut symbols: &[u32], group: usize) -> Result<(), ToolError> {
        while !symbols.is_empty() {
            let (strokes, rest) = self.strokes(symbols, group).await?;
            let shift = self.stroke(SHIFT, group).await?;
            let drawn = self.drawn().await?;
            lock(&self.keyboard).drawn = Some(drawn);
            let mut held: Option<PressedInput<'_>> = None;
            for (index, stroke) in strokes.iter().enumerate() {
                if stroke.shifted != held.is_some() {
                    held = match (stroke.shifted, shift) {
                        (true, Some(shift)) => Some(self.hold_key(shift.code)),
                        _ => None,
                    };
                }
                self.tap(stroke.code);
                if index % KEYS_AT_ONCE == KEYS_AT_ONCE - 1 {
                    self.sync().await?;
                }
            }
            drop(held);
            self.used(&strokes);
            symbols = rest;
        }
        Ok(())
    }

    /// Holds the keys of a combination down until the result is dropped.
    pub(crate) async fn hold_keys(&self, symbols: &[u32]) -> Result<HeldKeys<'_>, ToolError> {
        let (_, state) = self.pointer().await?;
        let group = usize::from((state >> 13) & 3);
        let (strokes, rest) = self.strokes(symbols, group).await?;
        if !rest.is_empty() {
            return Err(ToolError::invalid("the keyboard has no room for so many other keys at once"));
        }
        let mut codes: Vec<u8> = Vec::new();
        if strokes.iter().any(|stroke| stroke.shifted) {
            codes.extend(self.stroke(SHIFT, group).await?.map(|shift| shift.code));
        }
        codes.extend(strokes.iter().map(|stroke| stroke.code));
        self.used(&strokes);
        Ok(HeldKeys(codes.into_iter().map(|code| self.hold_key(code)).collect()))
    }

    /// Presses keys and leaves them down, or releases them.
    pub(crate) async fn leave_keys(&self, symbols: &[u32], down: bool) -> Result<(), ToolError> {
        let (strokes, _) = self.strokes(symbols, 0).await?;
        strokes.iter().for_each(|stroke| self.key(stroke.code, down));
        self.sync().await?;
        Ok(())
    }

    /// Takes back what was mapped, on a display that others use too.
    pub(crate) async fn restore_keyboard(&self) -> Result<(), XError> {
        let ours: Vec<u8> = lock(&self.keyboard).ours.keys().copied().collect();
        if ours.is_empty() {
            return Ok(());
        }
        let drawn = lock(&self.keyboard).drawn;
        self.settle(drawn, REUSE).await?;
        for code in ours {
            self.map(code, NO_SYMBOL);
        }
        let mut keyboard = lock(&self.keyboard);
        (keyboard.ours, keyboard.mapping) = (HashMap::new(), None);
        Ok(())
    }

    /// How the first of these symbols are typed: as many as there are key codes for.
    async fn strokes<'s>(
        &self,
        symbols: &'s [u32],
        group: usize,
    ) -> Result<(Vec<Stroke>, &'s [u32]), ToolError> {
        let mapping = self.mapping().await?;
        let find = |symbol: u32| mapping.find(symbol, group).or_else(|| self.own_stroke(&mapping, symbol));
        let missing = |symbol: u32| find(symbol).is_none();
        if !symbols.iter().any(|symbol| missing(*symbol)) {
            return Ok((symbols.iter().filter_map(|symbol| find(*symbol)).collect(), &[]));
        }
        // Which codes can be mapped: those without symbols, then ours that this text does not need.
        let needed: Vec<u8> =
            symbols.iter().filter_map(|symbol| find(*symbol)).map(|stroke| stroke.code).collect();
        let fresh = mapping.spare();
        let mut ours: Vec<(Instant, u8)> = {
            let keyboard = lock(&self.keyboard);
            keyboard.ours.iter().map(|(code, used)| (*used, *code)).collect()
        };
        ours.retain(|(_, code)| !needed.contains(code) && !fresh.contains(code));
        ours.sort_unstable();
        let mut codes = fresh
            .into_iter()
            .map(|code| (None, code))
            .chain(ours.into_iter().map(|(used, code)| (Some(used), code)));
        let mut mapped: HashMap<u32, u8> = HashMap::new();
        let mut recent = false;
        let mut strokes = Vec::new();
        let mut done = 0;
        for symbol in symbols {
            let stroke = match find(*symbol) {
                Some(stroke) => stroke,
                None => {
                    let code = match mapped.get(symbol) {
                        Some(code) => Some(*code),
                        None => codes.next().map(|(used, code)| {
                            recent |= used.is_some_and(|used| used.elapsed() < REUSE.longest);
                            mapped.insert(*symbol, code);
                            code
                        }),
                    };
                    let Some(code) = code else { break };
                    Stroke { code, shifted: false }
                }
            };
            strokes.push(stroke);
            done += 1;
        }
        if done == 0 {
            return Err(ToolError::new("the keyboard has no spare key code for this character"));
        }
        if recent {
            let drawn = lock(&self.keyboard).drawn;
            self.settle(drawn, REUSE).await?;
        }
        let now = Instant::now();
        for (symbol, code) in &mapped {
            self.map(*code, *symbol);
            lock(&self.keyboard).ours.insert(*code, now);
        }
        self.sync().await?;
        Ok((strokes, symbols.get(done..).unwrap_or_default()))
    }

    /// A key code that we mapped to this symbol earlier, which holds in each layout.
    fn own_stroke(&self, mapping: &Mapping, symbol: u32) -> Option<Stroke> {
        let keyboard = lock(&self.keyboard);
        let ours = |code: &u8| keyboard.ours.contains_key(code);
        let found = mapping.rows().find(|(code, row)| ours(code) && row.first() == Some(&symbol));
        found.map(|(code, _)| Stroke { code, shifted: false })
    }

    async fn stroke(&self, symbol: u32, group: usize) -> Result<Option<Stroke>, XError> {
        let mapping = self.mapping().await?;
        // Modifiers stand in the first layout only.
        Ok(mapping.find(symbol, group).or_else(|| mapping.find(symbol, 0)))
    }

    fn used(&self, strokes: &[Stroke]) {
        let now = Instant::now();
        let mut keyboard = lock(&self.keyboard);
        for stroke in strokes {
            if let Some(used) = keyboard.ours.get_mut(&stroke.code) {
                *used = now;
            }
        }
    }

    fn map(&self, code: u8, symbol: u32) {
        // X takes a lone letter as a pair of a small and a capital one; twice the same is itself.
        let request = ChangeKeyboardMappingRequest {
            keycode_count: 1,
            first_keycode: code,
            keysyms_per_keycode: 2,
            keysyms: vec![symbol, symbol].into(),
        };
        self.x.send(request, 0);
    }

    async fn mapping(&self) -> Result<Mapping, XError> {
        self.sync().await?;
        let changes = self.x.events().borrow().mapping;
        if let Some((known, mapping)) = &lock(&self.keyboard).mapping
            && *known == changes
        {
            return Ok(mapping.clone());
        }
        let (first, last) = (self.x.setup.min_keycode, self.x.setup.max_keycode);
        let count = last.saturating_sub(first).saturating_add(1);
        let reply = self.x.ask(GetKeyboardMappingRequest { first_keycode: first, count }, 0).await?;
        let mapping = Mapping { first, columns: reply.keysyms_per_keycode.into(), symbols: reply.keysyms };
        let mut keyboard = lock(&self.keyboard);
        // A layout that was loaded since replaces what we mapped.
        keyboard.ours.retain(|code, _| !mapping.is_spare(*code));
        keyboard.mapping = Some((changes, mapping.clone()));
        Ok(mapping)
    }
}

/// Keys that are down. The last one is released first.
pub(crate) struct HeldKeys<'a>(Vec<PressedInput<'a>>);

impl Drop for HeldKeys<'_> {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping() -> Mapping {
        // Two layouts: Latin, then Cyrillic.
        let rows = [
            [0x61, 0x41, 0x6c6, 0x6e6],
            [0x71, 0, 0x6ca, 0],
            [0, 0, 0, 0],
            [0xffb1, 0x31, 0, 0],
            [0x31, 0x21, 0x31, 0x21],
            [0x3d, 0x2b, 0x3d, 0x2b],
        ];
        Mapping { first: 10, columns: 4, symbols: rows.concat() }
    }

    #[test]
    fn a_character_is_found_in_its_own_layout_only() {
        let mapping = mapping();
        let stroke = |code, shifted| Some(Stroke { code, shifted });
        assert_eq!(mapping.find(0x61, 0), stroke(10, false));
        assert_eq!(mapping.find(0x41, 0), stroke(10, true));
        assert_eq!(mapping.find(0x51, 0), stroke(11, true), "a lone letter is a pair");
        assert_eq!(mapping.find(0x31, 0), stroke(14, false), "not the keypad's");
        assert_eq!(mapping.find(0xffb1, 0), stroke(13, false));
        assert_eq!(mapping.find(0x61, 1), None, "a Cyrillic layout types no Latin letters");
        assert_eq!(mapping.find(0x2b, 1), stroke(15, true));
        assert_eq!(mapping.spare(), [12]);
    }
}
