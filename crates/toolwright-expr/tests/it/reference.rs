//! The reference page shows the tables the evaluator really uses.

const MARK: &str = "TOOLWRIGHT_BLESS=1. -->\n\n";

#[test]
fn the_reference_page_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/expressions.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, _) = page.split_once(MARK).expect("the page lost its mark");
    let wanted = format!("{head}{MARK}{}", toolwright_expr::reference_tables());
    if std::env::var_os("TOOLWRIGHT_BLESS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        wanted,
        "run with TOOLWRIGHT_BLESS=1 to rewrite the page"
    );
}

#[test]
fn the_documented_limits_are_the_defaults() {
    let limits = toolwright_expr::EvalLimits::default();
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/expressions.md"))
            .unwrap();
    for row in [
        format!(
            "| `steps` | {},{:03},{:03} |",
            limits.steps / 1_000_000,
            limits.steps / 1_000 % 1_000,
            limits.steps % 1_000
        ),
        format!("| `bytes` | {} MiB |", limits.bytes >> 20),
        format!("| `depth` | {} |", limits.depth),
        format!("| `output` | {} MiB |", limits.output >> 20),
        format!("| `digits` | {},{:03} |", limits.digits / 1_000, limits.digits % 1_000),
    ] {
        assert!(page.contains(&row), "the page does not say {row}");
    }
}
