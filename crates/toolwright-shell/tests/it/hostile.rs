//! Texts made to hurt the reader.

use toolwright_shell::{MOST_BYTES, ShellVerdict, judge, parts};

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
fn what_is_too_long_is_asked_about() {
    let long = format!("git status {}", "a".repeat(MOST_BYTES));
    assert_eq!(judge(&long, |_| Some(ShellVerdict::Approve)).verdict, ShellVerdict::Ask);
}

proptest::proptest! {
    #[test]
    fn any_mixture_is_answered(picks in proptest::collection::vec(0..PIECES.len(), 0..60)) {
        let text: String = picks.into_iter().filter_map(|pick| PIECES.get(pick).copied()).collect();
        let judged = judge(&text, |_| None);
        // Without a rule nothing is approved unless there is nothing to run.
        if judged.verdict == ShellVerdict::Approve {
            proptest::prop_assert!(parts(&text).is_ok_and(|parts| parts.is_empty()));
        }
    }
}
