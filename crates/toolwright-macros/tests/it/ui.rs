//! Every mistake a user can make, with the message it gets; and programs that must compile.

#[test]
fn mistakes_are_explained_and_good_programs_compile() {
    let cases = trybuild::TestCases::new();
    let mut files: Vec<_> =
        std::fs::read_dir("tests/ui").unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
        let passes =
            file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("pass_"));
        if passes { cases.pass(file) } else { cases.compile_fail(file) }
    }
}
