//! Text and figures of all PDF files below a folder, in processor time.

use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use toolwright_bench::report;
use toolwright_documents::{FigureDetail, ReadOptions, read, render};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name a folder")?;
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files)?;
    let best = |figures| (0..3).map(|_| measure(&files, figures)).fold(f64::INFINITY, f64::min);
    report(&[("text", best(FigureDetail::None)), ("text and figures", best(FigureDetail::Encoded))]);
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("pdf")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

/// Nanoseconds of processor time for all files.
fn measure(files: &[PathBuf], figures: FigureDetail) -> f64 {
    let begun = processor();
    for path in files {
        let Ok(bytes) = std::fs::read(path) else { continue };
        let options = ReadOptions { figures, ..ReadOptions::default() };
        if let Ok(document) = read(bytes, &options) {
            std::hint::black_box(render::plain_text(&document));
        }
    }
    processor() - begun
}

fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
