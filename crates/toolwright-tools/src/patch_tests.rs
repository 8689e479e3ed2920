use super::*;

fn applied(text: &str, patch: &str) -> Result<String, String> {
    let patch = format!("--- a/f\n+++ b/f\n{patch}");
    let changes = parse(&patch).map_err(|error| error.message().to_owned())?;
    match changes.as_slice() {
        [FileChange::Update { path, hunks, .. }] => {
            apply(path, text, hunks).map_err(|error| error.message().to_owned())
        }
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn a_hunk_goes_where_its_lines_are() {
    let text = "a\nb\nc\nd\n";
    assert_eq!(applied(text, "@@ -2,2 +2,2 @@\n b\n-c\n+C\n").unwrap(), "a\nb\nC\nd\n");
    assert_eq!(
        applied(text, "@@ -1,2 +1,2 @@\n c\n-d\n+D\n").unwrap(),
        "a\nb\nc\nD\n",
        "wrong number, one place"
    );
    assert_eq!(applied(text, "@@ -1 +1,2 @@\n a\n+x\n@@ -4 +5 @@\n-d\n+D\n").unwrap(), "a\nx\nb\nc\nD\n");
    assert_eq!(applied(text, "@@ -2,0 +3 @@\n+x\n").unwrap(), "a\nb\nx\nc\nd\n");
    assert_eq!(applied("", "@@ -0,0 +1 @@\n+x\n").unwrap(), "x\n");
    assert_eq!(
        applied("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n").unwrap(),
        "a\n\nB\n",
        "an empty context line"
    );
}

#[test]
fn a_hunk_that_does_not_fit_fails_loudly() {
    let fails = |text: &str, patch: &str, wanted: &str| {
        let error = applied(text, patch).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    };
    fails("a\nb\n", "@@ -1,2 +1,2 @@\n x\n-b\n+B\n", "line 1 is `a`, and the hunk has `x`");
    fails("d\nx\nd\nx\n", "@@ -9,1 +9,1 @@\n-d\n+D\n", "several places, at lines 1, 3");
    fails("a\n", "@@ -9,0 +10 @@\n+x\n", "the file has 1 lines");
    fails("a\nb\n", "@@ -2 +2 @@\n-b\n+B\n@@ -1 +1 @@\n-a\n+A\n", "hunk 2");
    fails("a\n", "@@ nonsense\n-a\n", "not the header of a hunk");
    fails("a\n", "@@ -1 +1 @@\n*a\n", "neither blank, - nor +");
    fails("a\n", "", "no hunk for f");
}

#[test]
fn line_endings_and_the_end_of_the_file_stay() {
    assert_eq!(applied("a\r\nb\r\n", "@@ -1,2 +1,3 @@\n-a\n+A\n+x\n b\n").unwrap(), "A\r\nx\r\nb\r\n");
    assert_eq!(applied("a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n").unwrap(), "A\nb");
    assert_eq!(
        applied("a\nb", "@@ -2 +2,2 @@\n b\n+c\n").unwrap(),
        "a\nb\nc",
        "it had no newline at the end"
    );
    let marked = "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n";
    assert_eq!(applied("a\nb", marked).unwrap(), "a\nc\n", "the patch adds it");
    let marked = "@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file\n";
    assert_eq!(applied("a\nb\n", marked).unwrap(), "a\nc", "the patch takes it away");
    assert_eq!(applied("\ta\n\tb\n", "@@ -2 +2 @@\n-\tb\n+\tB ✓\n").unwrap(), "\ta\n\tB ✓\n");
    assert_eq!(applied("a\r\nb\nc\r\n", "@@ -2 +2 @@\n-b\n+B\n").unwrap(), "a\r\nB\nc\r\n", "mixed endings");
}

#[test]
fn carriage_returns_of_a_marked_patch_are_kept() {
    let marked = |body: &str| parse(&format!("*** Begin Patch\n{body}*** End Patch\n")).unwrap();
    let changes = marked("*** Update File: f\r\n@@\n a\n+x\r\n b\n");
    let [FileChange::Update { path, hunks, .. }] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!((path.as_str(), apply("f", "a\nb\n", hunks).unwrap().as_str()), ("f", "a\nx\r\nb\n"));
    let changes = marked("*** Add File: g\n+one\r\n+two\n*** Delete File: h\n\r\n");
    assert!(matches!(&changes[0], FileChange::Create { text, .. } if text == "one\r\ntwo\n"), "{changes:?}");
    // Where all lines have them they belong to the message.
    let message = "*** Begin Patch\n*** Add File: g\n+one\n*** End Patch\n".replace('\n', "\r\n");
    assert!(matches!(&parse(&message).unwrap()[0], FileChange::Create { text, .. } if text == "one\n"));
}

#[test]
fn files_are_made_moved_and_deleted() {
    let patch = "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+y\n\
        diff --git a/o b/o\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/p b/q\nrename from p\nrename to q\n--- p\t2020\n+++ q\n@@ -1 +1 @@\n-x\n+y\n";
    let changes = parse(patch).unwrap();
    assert!(matches!(&changes[0], FileChange::Create { path, text, .. } if path == "n" && text == "x\ny\n"));
    assert!(
        matches!(&changes[1], FileChange::Delete { path, hunks: Some(hunks) } if path == "o" && hunks.len() == 1)
    );
    assert!(
        matches!(&changes[2], FileChange::Update { path, to: To::Move(to), .. } if path == "p" && to == "q")
    );
}

#[test]
fn the_marked_form_is_understood() {
    let patch = "*** Begin Patch\n*** Add File: n.txt\n+hello\n*** Delete File: o.txt\n*** Update File: f.py\n\
        *** Move to: g.py\n@@ def two():\n-    pass\n+    return 2\n*** End Patch\n";
    let changes = parse(patch).unwrap();
    let FileChange::Update { path, to, hunks, .. } = &changes[2] else { panic!("{changes:?}") };
    assert_eq!((path.as_str(), to), ("f.py", &To::Move("g.py".to_owned())));
    let text = "def one():\n    pass\n\ndef two():\n    pass\n";
    assert_eq!(apply(path, text, hunks).unwrap(), "def one():\n    pass\n\ndef two():\n    return 2\n");
    assert!(parse("*** Begin Patch\n*** Add File: x\n+a\n").is_err(), "the end is missing");
}

#[test]
fn nothing_is_not_a_patch() {
    for text in ["", "hello", "--- a\n+++ b\n", "@@ -1 +1 @@\n-a\n+b\n", "*** Begin Patch\n*** End Patch"] {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn hunks_are_not_compared_with_a_file_for_ever() {
    let kind = |work: usize, hunk: &str, lines: usize| {
        let hunks = parse_bare_hunks(hunk).unwrap();
        apply_within(work, "f", &"a\n".repeat(lines), &hunks).unwrap_err().kind()
    };
    // Like the file until its last line, wherever it is tried.
    let hunk = format!("@@ -1 +1 @@\n{}-b\n", " a\n".repeat(100));
    assert_eq!(kind(200_000, &hunk, 1000), ErrorKind::Unknown);
    assert_eq!(kind(50_000, &hunk, 1000), ErrorKind::OutputLimit);
    assert_eq!(kind(10_000, &"@@ -1,0 +2 @@\n+b\n".repeat(11), 1000), ErrorKind::OutputLimit);
    assert_eq!(kind(MOST_WORK, "@@ -1 +0,0 @@\n-b\n", MOST_LINES + 1), ErrorKind::OutputLimit);
}
