//! Real programs: an editor, a terminal and a calculator, driven through `computer`.

use serde_json::{Value, json};

use crate::desk::{Case, Desk, picture};

pub fn cases() -> Vec<Case> {
    crate::cases!("programs":
        an_editor_gets_exactly_what_was_typed,
        text_of_many_scripts_is_typed_on_any_layout,
        a_terminal_runs_what_was_typed,
        a_double_click_selects_a_word_and_a_drag_what_is_between,
        a_calculator_is_read_and_used_by_reference,
    )
}

/// An editor with an empty file of that name.
async fn editor(desk: &Desk, file: &str) {
    let shown = desk.start(&format!("touch {file}; exec mousepad {file}")).await;
    picture(&shown, "editor");
    active(desk, "Mousepad", json!({"action": "left_click", "coordinate": [400, 300]})).await;
}

/// Does something until a window is the active one, and returns the screen as text. On a busy machine the
/// window comes late, and a click before it goes elsewhere.
async fn active(desk: &Desk, window: &str, until: Value) -> String {
    let mut read = String::new();
    for _ in 0..100 {
        desk.act(until.clone()).await;
        read = desk.text(json!({"action": "read"})).await;
        if read.lines().any(|line| line.contains(window) && line.ends_with(", active")) {
            return read;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{window} did not become active:\n{read}");
}

async fn saved(desk: &Desk, file: &str, before: &str) -> String {
    desk.act(json!({"action": "key", "text": "ctrl+s"})).await;
    let text = desk.file(file, before).await;
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

async fn an_editor_gets_exactly_what_was_typed() {
    let desk = Desk::new().await;
    editor(&desk, "a.txt").await;
    let text = "Spaß àÝ €漢 😀 \"q\" /_?\nSecond\tline: {[(<>)]} ^`~´ AbC";
    let shown = desk.act(json!({"action": "type", "text": text})).await;
    picture(&shown, "typed");
    assert_eq!(saved(&desk, "a.txt", "").await, text);
    desk.act(json!({"action": "key", "text": "ctrl+a"})).await;
    desk.act(json!({"action": "type", "text": "x", "press_enter": true})).await;
    assert_eq!(saved(&desk, "a.txt", &format!("{text}\n")).await, "x");
}

async fn text_of_many_scripts_is_typed_on_any_layout() {
    let desk = Desk::new().await;
    editor(&desk, "b.txt").await;
    // Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, Hangul, Kana, Han, Armenian and symbols.
    let alphabets = [
        ('A', 'z'),
        ('Α', 'ω'),
        ('А', 'я'),
        ('א', 'ת'),
        ('ا', 'غ'),
        ('क', 'ह'),
        ('ก', 'ฮ'),
        ('가', '깋'),
        ('ぁ', 'ん'),
        ('一', '丿'),
        ('Ա', 'Ֆ'),
        ('←', '⇿'),
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut number = move |below: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32::try_from(state % u64::from(below)).unwrap()
    };
    let mut before = String::new();
    let rounds = std::env::var("TOOLWRIGHT_TYPED_STRINGS").map_or(2, |count| count.parse().unwrap());
    let layouts = ["us", "de", "fr", "ru"];
    for layout in layouts {
        desk.start(&format!("setxkbmap {layout}; exit 0")).await;
        for _ in 0..rounds {
            let text: String = alphabets
                .iter()
                .flat_map(|(first, last)| {
                    let (first, last) = (*first as u32, *last as u32);
                    (0..4)
                        .map(|_| char::from_u32(first + number(last - first + 1)).unwrap())
                        .collect::<Vec<_>>()
                })
                .collect();
            desk.act(
                json!({"actions": [{"action": "key", "text": "ctrl+a"}, {"action": "type", "text": text}]}),
            )
            .await;
            let now = saved(&desk, "b.txt", &before).await;
            assert_eq!(now, text, "layout {layout}");
            before = format!("{now}\n");
        }
    }
}

async fn a_terminal_runs_what_was_typed() {
    let desk = Desk::new().await;
    let shown = desk.start("xterm -geometry 80x24+0+0").await;
    picture(&shown, "terminal");
    let command = "printf '%s|' \"$HOME\" a\\ b $((6*7)) > out.txt";
    desk.act(json!({"actions": [
        {"action": "left_click", "coordinate": [200, 200]},
        {"action": "type", "text": command, "press_enter": true},
    ]}))
    .await;
    let text = desk.file("out.txt", "").await;
    assert!(text.ends_with("|a b|42|"), "{text}");
    // The key is released when the call is over.
    let held = desk.act(json!({"action": "hold_key", "text": "y", "duration": 1})).await;
    picture(&held, "held");
    desk.act(json!({"action": "key", "text": "ctrl+u"})).await;
    desk.act(json!({"action": "type", "text": "seq 1 500\n"})).await;
    let end = picture(&desk.act(json!({"action": "screenshot"})).await, "end");
    let scrolled = desk
        .act(json!({"action": "scroll", "coordinate": [200, 200], "scroll_direction": "up", "scroll_amount": 5}))
        .await;
    assert_ne!(picture(&scrolled, "scrolled"), end);
}

async fn a_double_click_selects_a_word_and_a_drag_what_is_between() {
    let desk = Desk::new().await;
    editor(&desk, "c.txt").await;
    desk.act(json!({"action": "type", "text": "alpha beta gamma\nsecond line"})).await;
    assert_eq!(saved(&desk, "c.txt", "").await, "alpha beta gamma\nsecond line");
    // The text begins at the upper left of its widget.
    let shown = desk.text(json!({"action": "read"})).await;
    assert!(shown.contains("alpha beta gamma\nsecond line"), "{shown}");
    let element = reference(&shown, "text");
    desk.act(json!({"action": "click_ref", "ref": element})).await;
    desk.act(json!({"action": "key", "text": "ctrl+Home"})).await;
    let [left, top] = first_letter(&desk).await;
    desk.act(json!({"action": "double_click", "coordinate": [left + 4, top]})).await;
    desk.act(json!({"action": "type", "text": "ALPHA"})).await;
    assert_eq!(
        saved(&desk, "c.txt", "alpha beta gamma\nsecond line\n").await,
        "ALPHA beta gamma\nsecond line"
    );
    desk.act(json!({"action": "left_click_drag", "start_coordinate": [left, top], "coordinate": [left + 300, top]})).await;
    let drawn = desk.act(json!({"action": "type", "text": "_"})).await;
    picture(&drawn, "dragged");
    let now = saved(&desk, "c.txt", "ALPHA beta gamma\nsecond line\n").await;
    assert_eq!(now, "_\nsecond line");
}

/// Where the first letter of the editor's text is: the blinking cursor is drawn there.
async fn first_letter(desk: &Desk) -> [u32; 2] {
    let before = picture(&desk.act(json!({"action": "key", "text": "ctrl+Home"})).await, "first");
    let after = picture(&desk.act(json!({"action": "key", "text": "shift+Right"})).await, "selected");
    let changed = before.enumerate_pixels().filter(|(x, y, pixel)| after.get_pixel(*x, *y) != *pixel);
    let places: Vec<(u32, u32)> = changed.map(|(x, y, _)| (x, y)).collect();
    let left = places.iter().map(|(x, _)| *x).min().expect("a letter was selected");
    let top = places.iter().map(|(_, y)| *y).min().unwrap();
    [left, top + 8]
}

async fn a_calculator_is_read_and_used_by_reference() {
    let desk = Desk::new().await;
    let shown = desk.start("galculator").await;
    picture(&shown, "calculator");
    let text = active(&desk, "galculator", json!({"action": "screenshot"})).await;
    assert!(text.starts_with("<screen-content id="), "{text}");
    assert!(text.contains("frame \"galculator\""), "{text}");
    for key in ["7", "*", "6", "="] {
        let element = reference(&text, &format!("toggle button \"{key}\""));
        desk.act(json!({"action": "click_ref", "ref": element})).await;
    }
    let result = desk.act(json!({"action": "screenshot"})).await;
    picture(&result, "calculated");
    let text = desk.text(json!({"action": "read"})).await;
    assert!(text.contains("42"), "{text}");
    let error = desk.error("computer", json!({"action": "click_ref", "ref": "e999"})).await;
    assert!(error.contains("no element `e999` was shown"), "{error}");
    let element = reference(&text, "toggle button \"7\"");
    desk.act(json!({"action": "key", "text": "ctrl+q"})).await;
    let error = desk.error("computer", json!({"action": "click_ref", "ref": element})).await;
    assert!(error.contains("gone"), "{error}");
}

/// The reference of the element whose line has these words.
fn reference(text: &str, words: &str) -> String {
    let line =
        text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in:\n{text}"));
    line.trim_start_matches('[').split(' ').next().unwrap().to_owned()
}
