//! The comments of a script, whatever its language, and the fenced block in them.

/// What comment lines begin with, the longer ones first.
const MARKS: [&str; 10] = ["///", "//", "--", "#", ";;", ";", "%", "'", "\"", "*"];

/// The text of a line that is a comment.
pub(crate) fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = MARKS.iter().find_map(|mark| line.strip_prefix(mark))?;
    Some(rest.strip_prefix(' ').unwrap_or(rest).trim_end())
}

/// The lines between `/// tool` and `///`; an error when the block does not end.
pub(crate) fn fenced_block(text: &str) -> Option<Result<String, String>> {
    let mut lines = text.lines();
    let opens = |line: &str| fence(line).is_some_and(|rest| rest == "tool");
    lines.by_ref().find(|line| opens(line))?;
    let mut block = String::new();
    for line in lines {
        if fence(line).is_some_and(str::is_empty) {
            return Some(Ok(block));
        }
        let Some(content) = comment(line) else { break };
        block.push_str(content);
        block.push('\n');
    }
    Some(Err("the block `/// tool` does not end with `///`".to_owned()))
}

/// What stands behind the fence of a comment line.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    MARKS
        .iter()
        .filter_map(|mark| line.strip_prefix(mark))
        .find_map(|rest| rest.strip_prefix(' ').unwrap_or(rest).strip_prefix("///"))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::fenced_block;

    #[test]
    fn a_block_is_found_in_comments_of_any_language() {
        for mark in ["#", "//", "--", ";", "%", "*"] {
            let text = format!("#!/x\n{mark} /// tool\n{mark} a: 1\n{mark}   b: 2\n{mark} ///\ncode");
            assert_eq!(fenced_block(&text), Some(Ok("a: 1\n  b: 2\n".to_owned())), "{mark}");
        }
        assert_eq!(fenced_block("# /// script\n# ///\n"), None);
        assert!(fenced_block("# /// tool\n# a: 1\ncode\n").is_some_and(|block| block.is_err()));
    }
}
