//! Commands: what goes in arrives, what comes out is returned, and how it ended is said exactly.

use std::time::Duration;

use toolwright_core::{ErrorKind, ExecRequest, MAX_EXEC_OUTPUT};

use super::{check, equal, fails, holds, shell};

check!(OUTPUT_IS_RETURNED, "output_is_returned", |sandbox| {
    let result = sandbox.exec(ExecRequest::new(["echo", "hello"])).await?;
    equal((result.code, result.stdout.as_str(), result.stderr.as_str()), (0, "hello\n", ""))
});

check!(ERRORS_ARE_RETURNED_APART, "errors_are_returned_apart", |sandbox| {
    let result = shell(sandbox, "echo out; echo err >&2").await?;
    equal((result.stdout.as_str(), result.stderr.as_str()), ("out\n", "err\n"))
});

check!(THE_EXIT_CODE_IS_RETURNED, "the_exit_code_is_returned", |sandbox| {
    for code in [0, 1, 70, 255] {
        equal(shell(sandbox, &format!("exit {code}")).await?.code, code)?;
    }
    Ok(())
});

check!(A_SIGNAL_IS_TOLD, "a_signal_is_told", |sandbox| {
    // An engine tells of signals as shells do.
    let code = shell(sandbox, "kill -KILL $$").await?.code;
    holds("the code tells of SIGKILL", code == -9 || code == 137)?;
    equal(shell(sandbox, "exit 137").await?.code, 137)
});

check!(ENDING_BY_SIGTERM_IS_NOT_A_TIMEOUT, "ending_by_sigterm_is_not_a_timeout", |sandbox| {
    let request = ExecRequest::new(["sh", "-c", "kill -TERM $$"]).timeout(Duration::from_secs(30));
    let code = sandbox.exec(request).await?.code;
    holds("the code tells of SIGTERM", code == -15 || code == 143)
});

check!(VARIABLES_ARE_SET, "variables_are_set", |sandbox| {
    let request = ExecRequest::new(["sh", "-c", "echo $ONE-$TWO"]).env("ONE", "1").env("TWO", "2");
    equal(sandbox.exec(request).await?.stdout.as_str(), "1-2\n")
});

check!(VARIABLES_ARE_TAKEN_LITERALLY, "variables_are_taken_literally", |sandbox| {
    let value = "$(id) `id` ; & | > \\ ' \" \n end";
    let request = ExecRequest::new(["sh", "-c", "printf %s \"$ODD\""]).env("ODD", value);
    equal(sandbox.exec(request).await?.stdout.as_str(), value)
});

check!(THE_FOLDER_IS_THE_WORKSPACE, "the_folder_is_the_workspace", |sandbox| {
    sandbox.write_file("marker-here", b"").await?;
    let result = shell(sandbox, "ls marker-here").await?;
    equal(result.stdout.as_str(), "marker-here\n")
});

check!(A_RELATIVE_FOLDER_WORKS, "a_relative_folder_works", |sandbox| {
    sandbox.write_file("sub/folder/marker", b"").await?;
    let result = sandbox.exec(ExecRequest::new(["ls"]).cwd("sub/folder")).await?;
    equal(result.stdout.as_str(), "marker\n")
});

check!(AN_ABSOLUTE_FOLDER_WORKS, "an_absolute_folder_works", |sandbox| {
    let result = sandbox.exec(ExecRequest::new(["pwd"]).cwd("/usr")).await?;
    equal(result.stdout.as_str(), "/usr\n")
});

check!(A_MISSING_FOLDER_IS_AN_ERROR, "a_missing_folder_is_an_error", |sandbox| {
    let result = sandbox.exec(ExecRequest::new(["pwd"]).cwd("no/such/folder")).await;
    fails(result, ErrorKind::FileNotFound).map(drop)
});

check!(TEXT_INPUT_ARRIVES, "text_input_arrives", |sandbox| {
    let result = sandbox.exec(ExecRequest::new(["cat"]).input("h\u{e9}llo\n")).await?;
    equal(result.stdout.as_str(), "h\u{e9}llo\n")
});

check!(BINARY_INPUT_ARRIVES, "binary_input_arrives", |sandbox| {
    let bytes: Vec<u8> = (0..=255).collect();
    sandbox.exec(ExecRequest::new(["sh", "-c", "cat > from-input"]).input(bytes.clone())).await?;
    equal(sandbox.read_file("from-input").await?, bytes)
});

check!(FIFTY_MEBIBYTES_OF_INPUT_ARRIVE, "fifty_mebibytes_of_input_arrive", |sandbox| {
    let result = sandbox.exec(ExecRequest::new(["wc", "-c"]).input(vec![b'x'; 50 << 20])).await?;
    equal(result.stdout.trim(), "52428800")
});

check!(EMPTY_INPUT_IS_EMPTY, "empty_input_is_empty", |sandbox| {
    let request = ExecRequest::new(["wc", "-c"]).input("").timeout(Duration::from_secs(20));
    equal(sandbox.exec(request).await?.stdout.trim(), "0")
});

check!(NO_INPUT_IS_END_OF_FILE, "no_input_is_end_of_file", |sandbox| {
    let request = ExecRequest::new(["wc", "-c"]).timeout(Duration::from_secs(20));
    equal(sandbox.exec(request).await?.stdout.trim(), "0")
});

check!(INPUT_IS_TAKEN_LITERALLY, "input_is_taken_literally", |sandbox| {
    let text = "'; echo $(id) `id` \"$HOME\" && | > x\n\\n\0end";
    equal(sandbox.exec(ExecRequest::new(["cat"]).input(text)).await?.stdout.as_str(), text)
});

check!(UNREAD_INPUT_IS_NO_ERROR, "unread_input_is_no_error", |sandbox| {
    let result = sandbox.exec(ExecRequest::new(["true"]).input(vec![0; 1 << 20])).await?;
    equal(result.code, 0)
});

check!(A_MEBIBYTE_OF_ARGUMENTS_ARRIVES, "a_mebibyte_of_arguments_arrives", |sandbox| {
    let mut command = vec!["sh".to_owned(), "-c".to_owned(), "echo $#".to_owned(), "sh".to_owned()];
    command.extend(std::iter::repeat_n("a".repeat(1023), 1024));
    equal(sandbox.exec(ExecRequest::new(command)).await?.stdout.trim(), "1024")
});

check!(ARGUMENTS_ARE_TAKEN_LITERALLY, "arguments_are_taken_literally", |sandbox| {
    let odd = ["", " ", "-n", "$(id)", "a;b", "new\nline", "'\"\\", "*", "~"];
    let mut command = vec!["sh", "-c", "for one; do printf '[%s]' \"$one\"; done", "sh"];
    command.extend(odd);
    let want: String = odd.iter().map(|one| format!("[{one}]")).collect();
    equal(sandbox.exec(ExecRequest::new(command)).await?.stdout, want)
});

check!(A_NUL_IN_AN_ARGUMENT_IS_AN_ERROR, "a_nul_in_an_argument_is_an_error", |sandbox| {
    fails(sandbox.exec(ExecRequest::new(["echo", "a\0b"])).await, ErrorKind::Parsing).map(drop)
});

check!(A_MISSING_PROGRAM_IS_AN_ERROR, "a_missing_program_is_an_error", |sandbox| {
    let missing = sandbox.exec(ExecRequest::new(["no-such-program-here"])).await;
    let error = fails(missing, ErrorKind::FileNotFound)?;
    holds("the error names the program", error.message().contains("no-such-program-here"))
});

check!(A_FILE_THAT_IS_NO_PROGRAM_IS_AN_ERROR, "a_file_that_is_no_program_is_an_error", |sandbox| {
    fails(sandbox.exec(ExecRequest::new(["/etc/passwd"])).await, ErrorKind::Permission).map(drop)
});

check!(AN_UNKNOWN_USER_IS_AN_ERROR, "an_unknown_user_is_an_error", |sandbox| {
    let mut request = ExecRequest::new(["id"]);
    request.user = Some("no-such-user".to_owned());
    match sandbox.exec(request).await {
        Err(error) => holds("the error is expected", !error.is_fatal()),
        Ok(result) => holds("it did not run", !result.success()),
    }
});

check!(TOO_MUCH_OUTPUT_IS_AN_ERROR, "too_much_output_is_an_error", |sandbox| {
    let script = format!("echo first; head -c {} /dev/zero | tr '\\0' x; echo; echo last", MAX_EXEC_OUTPUT);
    let error = fails(shell(sandbox, &script).await, ErrorKind::OutputLimit)?;
    let text = error.partial().map(|partial| partial.to_text()).unwrap_or_default();
    holds("head and tail are kept", text.starts_with("first\n") && text.trim_end().ends_with("last"))?;
    holds("no more than a part is kept", text.len() < MAX_EXEC_OUTPUT)
});

check!(TOO_MANY_ERRORS_ARE_AN_ERROR, "too_many_errors_are_an_error", |sandbox| {
    let script = format!("head -c {} /dev/zero | tr '\\0' x >&2", MAX_EXEC_OUTPUT + 1);
    fails(shell(sandbox, &script).await, ErrorKind::OutputLimit).map(drop)
});

check!(BROKEN_TEXT_IS_REPLACED, "broken_text_is_replaced", |sandbox| {
    let bytes = shell(sandbox, "printf 'a\\377b'").await?;
    equal(bytes.stdout.as_str(), "a\u{fffd}b")?;
    fails(bytes.decoded(), ErrorKind::UnicodeDecode)?;
    equal(shell(sandbox, "printf 'a\\357\\277\\275b'").await?.decoded()?.stdout.as_str(), "a\u{fffd}b")
});

check!(FILES_STAY_BETWEEN_COMMANDS, "files_stay_between_commands", |sandbox| {
    let temporary = format!("/tmp/toolwright-{:016x}", crate::sys::random_u64());
    shell(sandbox, &format!("echo kept > staying; echo temporary > {temporary}")).await?;
    let result = shell(sandbox, &format!("cat staying {temporary}; rm {temporary}")).await?;
    equal(result.stdout.as_str(), "kept\ntemporary\n")
});

check!(COMMANDS_AT_ONCE_DO_NOT_MIX, "commands_at_once_do_not_mix", |sandbox| {
    let one = |word: &'static str| async move {
        let script = format!("for i in 1 2 3 4 5 6 7 8; do echo {word}; sleep 0.01; done");
        shell(sandbox, &script).await.map(|result| result.stdout)
    };
    let (a, b, c) = tokio::join!(one("a"), one("b"), one("c"));
    equal((a?, b?, c?), ("a\n".repeat(8), "b\n".repeat(8), "c\n".repeat(8)))
});
