//! The programs depend on nothing but `toolwright` and `tokio`, and print what they should.

use std::process::Command;

const MANIFEST: &str = include_str!("../../Cargo.toml");

#[test]
fn nothing_but_toolwright_and_tokio_is_needed() {
    let section = MANIFEST.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let names: Vec<&str> = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    assert_eq!(names, ["tokio", "toolwright"]);
    assert!(!MANIFEST.contains("-dependencies"));
}

fn lines(program: &str) -> Vec<String> {
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn types_of_the_program_are_parameters() {
    let lines = lines(env!("CARGO_BIN_EXE_parcels"));
    assert_eq!(lines[..2], ["10.5", "6.0"]);
    for wrong in ["city", "slow"] {
        assert!(lines[2].contains(wrong), "{lines:?}");
    }
}

#[test]
fn a_model_an_approver_and_a_tool_are_plain_implementations() {
    let lines = lines(env!("CARGO_BIN_EXE_own_parts"));
    assert!(lines[0].contains("21") && lines[0].contains("this program only reads"), "{lines:?}");
}

#[test]
fn errors_say_whose_fault_they_are() {
    let lines = lines(env!("CARGO_BIN_EXE_whose_fault"));
    assert_eq!(lines[0], "1.5");
    assert!(lines[1].starts_with("the file is wrong at half.yaml:7:"), "{lines:?}");
    assert!(lines[2].starts_with("the program is wrong: ") && lines[2].contains("`half`"), "{lines:?}");
    assert_eq!(lines[3], "a key is missing");
}
