//! `toolwright eval`: templates, and how their errors are shown.

use crate::show;

#[test]
fn templates_are_evaluated_and_errors_are_placed() {
    let large = "{\"x\": 12345678901234567890123, \"f\": 1e400}";
    let cases: [(&str, &[&str]); 15] = [
        ("sum", &["${1 + 1}"]),
        ("text_method", &["Hello ${name.title()}", "--vars", "{\"name\": \"ada\"}"]),
        ("comprehension", &["${[n * n for n in range(4)]}"]),
        ("unknown_name", &["${nam}", "--vars", "{\"name\": 1}"]),
        ("syntax_error", &["${1 +}"]),
        ("text_too_long", &["${'a' * 10 ** 12}"]),
        ("large_numbers", &["${[x, f]}", "--vars", large]),
        ("large_numbers_json", &["--json", "${[x, {10 ** 30: {1, 2}}]}", "--vars", large]),
        ("infinity_json", &["--json", "${f}", "--vars", large]),
        ("unknown_name_json", &["--json", "${nam}", "--vars", "{\"name\": 1}"]),
        ("division_by_zero_json", &["--json", "${1 // 0}"]),
        ("syntax_error_json", &["--json", "${1 +}"]),
        ("too_many_digits", &["${10 ** 5000}"]),
        ("vars_not_json", &["1", "--vars", "{\"a\": ,}"]),
        ("vars_not_an_object", &["1", "--vars", "[1]"]),
    ];
    for (case, args) in cases {
        insta::assert_snapshot!(case, show(&[&["eval"], args].concat()));
    }
}
