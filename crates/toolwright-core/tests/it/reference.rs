//! Reference pages that are made from the code. `TOOLWRIGHT_BLESS=1 cargo test` writes them anew.

use toolwright_core::ErrorKind;

#[test]
fn the_page_of_error_kinds_is_fresh() {
    let mut page =
        "# Error kinds\n\nOne vocabulary for Rust (`ErrorKind`), JSON (`type`), transcripts and `catch:`. \
        Made from the code.\n\n| kind | means |\n| --- | --- |\n"
            .to_owned();
    for kind in ErrorKind::ALL {
        page.push_str(&format!("| `{kind}` | {} |\n", kind.meaning()));
    }
    page.push_str(
        "\nA model reads an error as `{\"error\": {\"type\", \"message\", \"hint\"}}`, after whatever the tool had produced.\n",
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/errors.md");
    if std::env::var_os("TOOLWRIGHT_BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "TOOLWRIGHT_BLESS=1 rewrites it");
}
