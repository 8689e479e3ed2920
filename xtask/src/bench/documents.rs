//! Text and figures of PDF files, against PyMuPDF: processor time for whole folders of files.

use anyhow::Result;

use super::{Report, Row, nanos, ours_in, peer};

const PACKAGES: &[&str] = &["pymupdf==2.0", "reportlab==5.1.0", "pillow==13.0.0"];

/// The variable that names a folder of real files; without it the files made by the benchmark are used.
const CORPUS: &str = "TOOLWRIGHT_CORPUS";

pub fn run() -> Result<Report> {
    let (folder, what) = match std::env::var(CORPUS) {
        Ok(folder) => (std::path::PathBuf::from(folder), "real files"),
        Err(_) => (crate::root().join("target/bench-documents"), "files made by ReportLab"),
    };
    let shown = folder.display().to_string();
    let pymupdf = peer::run("documents", PACKAGES, &["pymupdf_documents.py", &shown])?;
    let mine = ours_in("documents", &folder)?;
    let row = |work: &str| -> Result<Row> {
        Ok(Row {
            work: work.to_owned(),
            ours: nanos(&mine, work)?,
            peer: "PyMuPDF",
            theirs: nanos(&pymupdf, work)?,
        })
    };
    let rows = vec![row("text")?, row("text and figures")?];
    let ratio = rows.last().map_or(0.0, Row::ratio);
    let about = format!(
        "Processor time for all pages of {what}: text alone, and text with encoded figures; ours makes the whole document \
         model. The ratio is that of text and figures."
    );
    Ok(Report { about, ratio, rows })
}
