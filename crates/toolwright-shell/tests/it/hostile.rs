//! Texts made to hurt the reader.

use toolwright_shell::{MOST_BYTES, parts};

const PIECES: &[&str] = &[
    "(",
    "{ ",
    "$(",
    "`",
    "if ",
    "if a; then ",
    "while a; do ",
    "case a in a) ",
    "[[ ( ",
    "f() { ",
    "f() ",
    "! ",
    "a && ",
    "a | ",
    "a ;",
    "<(",
    "((",
    "${a:-",
    "\"$(",
    "for i in a; do ",
    "coproc ",
    "a=(",
    "<<a ",
    "$((",
    "time ",
    "{a,",
    "\\",
    "'",
    "\"",
    "#",
    "\n",
    ")",
    "}",
    ";;",
    "&",
    ">",
    "\u{1f600}",
    "a[",
    "]",
    "sh -c '",
    "env ",
    "find . -exec ",
];

#[test]
fn long_repetitions_of_anything_are_answered() {
    for piece in PIECES {
        for count in [50, 500, MOST_BYTES / piece.len()] {
            let text = piece.repeat(count);
            // Either way is fine; to come back, without a panic and without overflowing the stack, is the
            // point.
            if let Ok(parts) = parts(&text) {
                assert!(parts.len() <= 1000, "{piece:?}");
            }
        }
    }
}

#[test]
fn a_text_that_is_too_long_is_an_error() {
    assert!(parts(&format!("git status {}", "a".repeat(MOST_BYTES))).is_err());
}

proptest::proptest! {
    #[test]
    fn any_mixture_is_answered(picks in proptest::collection::vec(0..PIECES.len(), 0..60)) {
        let text: String = picks.into_iter().filter_map(|pick| PIECES.get(pick).copied()).collect();
        // To come back, and with another spelling of each part, is the point.
        for part in parts(&text).into_iter().flatten() {
            let _ = part.spellings("*rm -rf*");
            let _ = (part.may_match("*rm [a]*"), part.possible_spelling("*--force*"));
        }
    }
}
