//! The pictures of the README: made by `cargo xtask pictures`, which sets `TOOLWRIGHT_PICTURES` to their folder. Without
//! it, the same steps are gone through and the result is only looked at.

use std::path::PathBuf;

use crate::browser::Page;
use crate::show_in;
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
