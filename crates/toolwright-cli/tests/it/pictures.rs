//! The pictures of the README: made by `cargo xtask pictures`, which sets `TOOLWRIGHT_PICTURES` to their
//! folder. Without it, the same steps are gone through and the result is only looked at.

use std::path::PathBuf;

use crate::browser::Page;
use crate::show_in;
use crate::terminal::{Recording, Terminal};
use crate::view::Served;

/// Where pictures are to be kept, if anywhere.
fn keep(name: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("TOOLWRIGHT_PICTURES") {
        std::fs::write(PathBuf::from(folder).join(name), bytes).unwrap();
    }
}

#[test]
fn the_viewer_can_be_photographed() {
    let folder = tempfile::tempdir().unwrap();
    let shown = show_in(folder.path(), &["ask", "What can you do?"], "");
    assert!(shown.ends_with("exit 0\n"), "{shown}");
    let served = Served::start(folder.path());
    let Some(mut page) = Page::open(&served.address) else { return };
    page.wait("document.querySelectorAll('.row').length >= 6");
    page.value("document.querySelector('.row.call').click()");
    page.wait(
        "!document.getElementById('detail').hidden && document.querySelectorAll('#detail pre').length > 1",
    );
    let picture = page.picture();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000);
    keep("view.png", &picture);
    page.value("document.getElementById('theme').click()");
    keep("view-dark.png", &page.picture());
}

#[test]
fn a_run_can_be_filmed() {
    let folder = tempfile::tempdir().unwrap();
    let (columns, rows) = (96, 32);
    let mut terminal = Terminal::start(folder.path(), &["chat", "--model", "demo"], columns, rows, &[]);
    terminal.wait("#1");
    // For a film somebody types and thinks; a test need not wait for that.
    let slowly = std::env::var_os("TOOLWRIGHT_PICTURES").is_some();
    let pause =
        |millis| std::thread::sleep(std::time::Duration::from_millis(if slowly { millis } else { 0 }));
    for key in "Is the draft ready?".chars() {
        terminal.send(&key.to_string());
        pause(70);
    }
    terminal.send("\r");
    terminal.wait("Allow it?");
    pause(1500);
    terminal.send("y");
    terminal.wait("#2");
    let film = film(&terminal.record.lock().unwrap(), columns, rows);
    assert!(film.contains("reading_time") && film.contains("@keyframes"));
    keep("chat.svg", film.as_bytes());
}

/// A recording as an SVG that plays by itself: one group per frame, shown in its time.
fn film(record: &Recording, columns: u16, rows: u16) -> String {
    let mut parser = vt100::Parser::new(rows, columns, 0);
    let mut frames: Vec<(f64, String)> = Vec::new();
    for (number, (time, bytes)) in record.iter().enumerate() {
        parser.process(bytes);
        let next = record.get(number + 1).map(|(next, _)| *next);
        // What follows within a twelfth of a second belongs to the same frame.
        if next.is_none_or(|next| (next - *time).as_secs_f64() > 0.08) || number % 8 == 0 {
            let drawn = frame(parser.screen(), columns, rows);
            if frames.last().is_none_or(|(_, last)| *last != drawn) {
                frames.push((time.as_secs_f64(), drawn));
            }
        }
    }
    let end = frames.last().map_or(1.0, |(time, _)| time + 5.0);
    let (width, height) = (f64::from(columns) * 8.4 + 24.0, f64::from(rows) * 18.0 + 24.0);
    let mut style = String::new();
    let mut body = String::new();
    for (number, (time, drawn)) in frames.iter().enumerate() {
        let from = if number == 0 { 0.0 } else { time / end * 100.0 };
        let to = frames.get(number + 1).map_or(100.0, |(next, _)| next / end * 100.0);
        let hide = if to < 100.0 { format!("{to:.2}%{{visibility:hidden}}") } else { String::new() };
        style += &format!(
            "@keyframes f{number}{{0%{{visibility:hidden}}{from:.2}%{{visibility:visible}}{hide}}}\n"
        );
        style += &format!(".f{number}{{animation:f{number} {end:.1}s step-end infinite}}\n");
        body += &format!("<g class=\"f f{number}\">{drawn}</g>\n");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <style>text{{font:14px ui-monospace,monospace;fill:#d7dae0;white-space:pre}}.f{{visibility:hidden}}\
         .b{{font-weight:bold}}.c1{{fill:#f87171}}.c2{{fill:#4ade80}}.c3{{fill:#fbbf24}}.c4{{fill:#6ea0ff}}.c6{{fill:#67e8f9}}\n\
         {style}</style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#14161a\"/>\n{body}</svg>\n"
    )
}

/// One screen as SVG text, row by row.
fn frame(screen: &vt100::Screen, columns: u16, rows: u16) -> String {
    let mut out = String::new();
    for row in 0..rows {
        let mut spans: Vec<(String, String)> = Vec::new();
        for column in 0..columns {
            let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else {
                continue;
            };
            let mut class = if cell.bold() { "b".to_owned() } else { String::new() };
            if let vt100::Color::Idx(colour) = cell.fgcolor() {
                class = format!("{class} c{colour}");
            }
            let text = if cell.has_contents() { cell.contents() } else { " " };
            let text = text.replace('&', "&amp;").replace('⏺', "●").replace('<', "&lt;").replace('>', "&gt;");
            match spans.last_mut().filter(|(last, _)| *last == class) {
                Some((_, line)) => line.push_str(&text),
                None => spans.push((class, text)),
            }
        }
        if spans.iter().all(|(_, text)| text.trim().is_empty()) {
            continue;
        }
        let spans: String = spans
            .iter()
            .map(|(class, text)| format!("<tspan class=\"{}\">{text}</tspan>", class.trim()))
            .collect();
        out += &format!("<text x=\"12\" y=\"{}\">{spans}</text>", u32::from(row) * 18 + 26);
    }
    out
}
