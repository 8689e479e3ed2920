//! `toolwright read`: documents as a model gets them, read by a worker.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A PDF of some pages, each with one line; the cross-reference table is left for the reader to rebuild.
fn pdf(pages: &[String]) -> Vec<u8> {
    let mut out = String::from("%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n");
    let kids: String = (0..pages.len()).map(|page| format!("{} 0 R ", 10 + page * 2)).collect();
    out += &format!("2 0 obj\n<< /Type /Pages /Kids [{kids}] /Count {} >>\nendobj\n", pages.len());
    out += "3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n";
    for (page, content) in pages.iter().enumerate() {
        let number = 10 + page * 2;
        out += &format!(
            "{number} 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> /XObject << /X 1000 0 R >> >> >>\nendobj\n",
            number + 1
        );
        out += &format!(
            "{} 0 obj\n<< /Length {} >>\nstream\n{content}\nendstream\nendobj\n",
            number + 1,
            content.len()
        );
    }
    for level in 1000..1008 {
        let content = if level == 1007 { "0 0 10 10 re f ".to_owned() } else { "/X Do ".repeat(20) };
        out += &format!(
            "{level} 0 obj\n<< /Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << /XObject << /X {} 0 R >> >> \
             /Length {} >>\nstream\n{content}\nendstream\nendobj\n",
            level + 1,
            content.len()
        );
    }
    out += "trailer\n<< /Root 1 0 R >>\n";
    out.into_bytes()
}

fn line(text: &str) -> String {
    format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET")
}

fn read(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .arg("read")
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn pages_outline_and_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let pages: Vec<String> = (1..=4).map(|page| line(&format!("This is page {page}"))).collect();
    std::fs::write(folder.path().join("a.pdf"), pdf(&pages)).unwrap();
    let output = read(folder.path(), &["a.pdf", "--pages", "2-3", "--page-marks"]);
    assert_eq!(
        text(&output.stdout),
        "--- Page 2 ---\n\nThis is page 2\n\n--- Page 3 ---\n\nThis is page 3\n"
    );
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));

    std::fs::write(folder.path().join("a.md"), "# One\n\n## Two\n\ntext\n").unwrap();
    let output = read(folder.path(), &["a.md", "--outline"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("One\n  Two\n", Some(0)));

    let output = read(folder.path(), &["a.pdf", "--json", "--pages", "4"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((document["kind"].as_str(), document["total"].as_u64()), (Some("pdf"), Some(4)));
    assert_eq!(document["blocks"][0]["text"], "This is page 4");
    assert_eq!(document["blocks"][0]["id"], "p4.b1");
    assert_eq!(document["blocks"][0]["box"].as_array().map(Vec::len), Some(4));
}

#[test]
fn the_reader_can_open_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "words").unwrap();
    let output = read(folder.path(), &["a.txt", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["reader"], serde_json::json!({"sealed": true}));
}

#[test]
fn wrong_usage_and_unreadable_files_have_their_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "words").unwrap();
    std::fs::write(folder.path().join("a.bin"), b"\x00\x01\x02").unwrap();
    std::fs::write(folder.path().join("b.pdf"), b"%PDF-1.4 and nothing else").unwrap();
    let code = |args: &[&str]| read(folder.path(), args).status.code();
    assert_eq!(code(&["missing.pdf"]), Some(2));
    assert_eq!(code(&["."]), Some(2));
    assert_eq!(code(&["a.txt", "--pages", "0"]), Some(2));
    assert_eq!(code(&["a.txt", "--pages", "7"]), Some(2));
    assert_eq!(code(&["a.bin"]), Some(1));
    assert_eq!(code(&["b.pdf"]), Some(1));
    let output = read(folder.path(), &["b.pdf", "--json"]);
    let error: Value =
        serde_json::from_slice(&output.stderr).or_else(|_| serde_json::from_slice(&output.stdout)).unwrap();
    assert_eq!(error["error"]["type"], "parsing");
}

#[test]
fn figures_are_saved_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let image = "q 90 0 0 60 72 500 cm BI /W 16 /H 16 /CS /G /BPC 8 /F /AHx ID ".to_owned()
        + &"7f".repeat(256)
        + "> EI Q";
    std::fs::write(folder.path().join("a.pdf"), pdf(&[line("Above") + "\n" + &image])).unwrap();
    let output = read(folder.path(), &["a.pdf", "--figures", "out", "--page-pictures", "36"]);
    assert_eq!(text(&output.stdout), "Above\n\n[figure p1.f1: 16x16]\n", "{}", text(&output.stderr));
    for name in ["p1.f1.png", "p1.picture.png"] {
        assert!(
            std::fs::read(folder.path().join("out").join(name)).unwrap().starts_with(b"\x89PNG"),
            "{name}"
        );
    }
    assert_eq!(read(folder.path(), &["a.pdf", "--figures", "out"]).status.code(), Some(2));
}

#[test]
fn time_that_is_up_keeps_the_pages_before() {
    let folder = tempfile::tempdir().unwrap();
    // The second page draws a form that draws another twenty times, and so on: a small file that never ends.
    std::fs::write(folder.path().join("a.pdf"), pdf(&[line("The first page"), "/X Do".to_owned()])).unwrap();
    let begun = std::time::Instant::now();
    let output = read(folder.path(), &["a.pdf", "--timeout", "4s"]);
    assert!(begun.elapsed().as_secs() < 40, "{:?}", begun.elapsed());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).starts_with("The first page\n\n[reading stopped at page 2: "),
        "{}",
        text(&output.stdout)
    );
}
