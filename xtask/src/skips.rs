//! Tests that passed because something they need is not here: they say `skipped` and why, and are listed at
//! the end.

use std::path::PathBuf;

/// Where the test runner writes what each test said (`.config/nextest.toml`), wherever things are built.
fn report() -> PathBuf {
    crate::root().join("target/nextest/default/junit.xml")
}

/// Forgets an earlier report.
pub fn begin() {
    // One that is not there is forgotten already.
    let _ = std::fs::remove_file(report());
}

/// Says which tests were skipped, and why.
pub fn list() {
    let Ok(report) = std::fs::read_to_string(report()) else { return };
    let skips = found(&report);
    if !skips.is_empty() {
        eprintln!(
            "\n{} for want of something:",
            if skips.len() == 1 {
                "1 test was skipped".to_owned()
            } else {
                format!("{} tests were skipped", skips.len())
            }
        );
        skips.iter().for_each(|(test, why)| eprintln!("  {test}: {why}"));
    }
}

/// Tests and what they said, in the order of the report; of one test, each reason once.
fn found(report: &str) -> Vec<(String, String)> {
    let mut skips = Vec::new();
    for case in report.split("<testcase ").skip(1) {
        let name = |attribute: &str| {
            let (_, rest) = case.split_once(&format!("{attribute}=\""))?;
            rest.split_once('"').map(|(value, _)| plain(value))
        };
        let test = [name(" classname").or_else(|| name("classname")), name("name")];
        let test = test.into_iter().flatten().collect::<Vec<_>>().join(" ");
        for line in case.lines() {
            // What a test prints begins behind the tag.
            let said = line.rsplit_once('>').map_or(line, |(_, said)| said).trim();
            let word = said.get(..7).filter(|word| word.eq_ignore_ascii_case("skipped"));
            let Some(why) = word.and_then(|_| said.get(7..)) else { continue };
            let skip = (test.clone(), plain(why.trim_start_matches([':', ' '])));
            if !skips.contains(&skip) {
                skips.push(skip);
            }
        }
    }
    skips
}

/// Text as it was before it became XML.
fn plain(text: &str) -> String {
    let signs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    signs.iter().fold(text.to_owned(), |text, (code, sign)| text.replace(code, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_read_from_the_report() {
        let report = r#"<testsuite name="toolwright-cli::it">
        <testcase name="browser::opens" classname="toolwright-cli::it" time="0.1">
            <system-out>
running 1 test
</system-out>
            <system-err>SKIPPED: no Chromium here (`cargo xtask test` installs it)
</system-err>
        </testcase>
        <testcase name="plain" classname="toolwright-cli::it" time="0.1"><system-out>nothing is skipped
</system-out></testcase>
        <testcase name="other" classname="a::b" time="0.1"><system-out>ok &amp; well
skipped loops: no &quot;llama&quot;
</system-out></testcase>"#;
        let wanted = [
            ("toolwright-cli::it browser::opens", "no Chromium here (`cargo xtask test` installs it)"),
            ("a::b other", "loops: no \"llama\""),
        ];
        let wanted = wanted.map(|(test, why)| (test.to_owned(), why.to_owned()));
        assert_eq!(found(report), wanted);
    }
}
