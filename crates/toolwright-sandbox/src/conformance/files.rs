//! Files: what is written comes back, and what cannot be done says why.

use toolwright_core::{ErrorKind, MAX_READ_FILE};

use super::{CheckFailure, check, equal, fails, holds, ordinary_user, shell};

check!(TEXT_COMES_BACK, "text_comes_back", |sandbox| {
    sandbox.write_file("text.txt", b"first\nsecond\n").await?;
    equal(sandbox.read_text("text.txt").await?.as_str(), "first\nsecond\n")
});

check!(TEXT_BEYOND_ASCII_COMES_BACK, "text_beyond_ascii_comes_back", |sandbox| {
    let text = "h\u{e9}llo \u{4e16}\u{754c} \u{1f980}";
    sandbox.write_file("utf8.txt", text.as_bytes()).await?;
    equal(sandbox.read_text("utf8.txt").await?.as_str(), text)
});

check!(BYTES_COME_BACK, "bytes_come_back", |sandbox| {
    let bytes: Vec<u8> = (0..=255).collect();
    sandbox.write_file("bytes.bin", &bytes).await?;
    equal(sandbox.read_file("bytes.bin").await?, bytes)
});

check!(FIFTY_MEBIBYTES_COME_BACK, "fifty_mebibytes_come_back", |sandbox| {
    let bytes: Vec<u8> = (0..50u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    sandbox.write_file("large.bin", &bytes).await?;
    let got = sandbox.read_file("large.bin").await?;
    shell(sandbox, "rm large.bin").await?;
    holds("the bytes differ", got == bytes)
});

check!(AN_EMPTY_FILE_COMES_BACK, "an_empty_file_comes_back", |sandbox| {
    sandbox.write_file("empty", b"").await?;
    equal(sandbox.read_text("empty").await?.as_str(), "")
});

check!(NEWLINES_ARE_KEPT, "newlines_are_kept", |sandbox| {
    sandbox.write_file("newlines.txt", b"a\r\nb\nc\rd").await?;
    equal(sandbox.read_text("newlines.txt").await?.as_str(), "a\r\nb\nc\rd")
});

check!(A_NAME_MAY_HAVE_SPACES, "a_name_may_have_spaces", |sandbox| {
    sandbox.write_file("a folder/a 'file' $x", b"here").await?;
    equal(sandbox.read_text("a folder/a 'file' $x").await?.as_str(), "here")
});

check!(PARENTS_ARE_MADE, "parents_are_made", |sandbox| {
    sandbox.write_file("one/two/three/file", b"deep").await?;
    equal(sandbox.read_text("one/two/three/file").await?.as_str(), "deep")
});

check!(A_FILE_IS_OVERWRITTEN, "a_file_is_overwritten", |sandbox| {
    sandbox.write_file("again", b"old").await?;
    sandbox.write_file("again", b"new").await?;
    equal(sandbox.read_text("again").await?.as_str(), "new")
});

check!(A_SHORTER_TEXT_LEAVES_NOTHING_BEHIND, "a_shorter_text_leaves_nothing_behind", |sandbox| {
    sandbox.write_file("shorter", b"a long text").await?;
    sandbox.write_file("shorter", b"short").await?;
    equal(sandbox.read_text("shorter").await?.as_str(), "short")
});

check!(A_RELATIVE_PATH_IS_IN_THE_WORKSPACE, "a_relative_path_is_in_the_workspace", |sandbox| {
    sandbox.write_file("relative", b"x").await?;
    equal(shell(sandbox, "cat relative").await?.stdout.as_str(), "x")
});

check!(AN_ABSOLUTE_PATH_WORKS, "an_absolute_path_works", |sandbox| {
    let folder = shell(sandbox, "pwd").await?.stdout;
    let path = format!("{}/absolute", folder.trim_end());
    sandbox.write_file(&path, b"x").await?;
    equal(sandbox.read_text(&path).await?.as_str(), "x")
});

check!(WRITING_A_FOLDER_IS_AN_ERROR, "writing_a_folder_is_an_error", |sandbox| {
    shell(sandbox, "mkdir -p folder").await?;
    fails(sandbox.write_file("folder", b"x").await, ErrorKind::IsADirectory).map(drop)
});

check!(WRITING_A_PROTECTED_FILE_IS_AN_ERROR, "writing_a_protected_file_is_an_error", |sandbox| {
    ordinary_user(sandbox).await?;
    shell(sandbox, "echo old > fixed.txt; chmod a-w fixed.txt").await?;
    let error = fails(sandbox.write_file("fixed.txt", b"new").await, ErrorKind::Permission)?;
    holds("the error names the file", error.message().contains("fixed.txt"))?;
    equal(sandbox.read_text("fixed.txt").await?.as_str(), "old\n")
});

check!(READING_A_MISSING_FILE_IS_AN_ERROR, "reading_a_missing_file_is_an_error", |sandbox| {
    let error = fails(sandbox.read_file("no-such-file.txt").await, ErrorKind::FileNotFound)?;
    holds("the error names the file", error.message().contains("no-such-file.txt"))
});

check!(READING_A_NONSENSE_NAME_IS_AN_ERROR, "reading_a_nonsense_name_is_an_error", |sandbox| {
    fails(sandbox.read_file("https:/en.wikipedia.org/wiki/Bart%C5%82omiej").await, ErrorKind::FileNotFound)
        .map(drop)
});

check!(READING_A_FOLDER_IS_AN_ERROR, "reading_a_folder_is_an_error", |sandbox| {
    shell(sandbox, "mkdir -p folder").await?;
    fails(sandbox.read_file("folder").await, ErrorKind::IsADirectory).map(drop)
});

check!(READING_A_FORBIDDEN_FILE_IS_AN_ERROR, "reading_a_forbidden_file_is_an_error", |sandbox| {
    ordinary_user(sandbox).await?;
    shell(sandbox, "echo secret > hidden.txt; chmod a-r hidden.txt").await?;
    let error = fails(sandbox.read_file("hidden.txt").await, ErrorKind::Permission)?;
    holds("the error names the file", error.message().contains("hidden.txt"))
});

check!(READING_BYTES_AS_TEXT_IS_AN_ERROR, "reading_bytes_as_text_is_an_error", |sandbox| {
    sandbox.write_file("broken", &[0xc3, 0x28]).await?;
    fails(sandbox.read_text("broken").await, ErrorKind::UnicodeDecode).map(drop)
});

check!(READING_TOO_LARGE_A_FILE_IS_AN_ERROR, "reading_too_large_a_file_is_an_error", |sandbox| {
    let script =
        format!("truncate -s {} huge || dd if=/dev/zero of=huge bs=1 count=0 seek={0}", MAX_READ_FILE + 1);
    shell(sandbox, &script).await?;
    let error = fails(sandbox.read_file("huge").await, ErrorKind::OutputLimit)?;
    shell(sandbox, "rm huge").await?;
    holds("the error carries a part of the file", error.partial().is_some())
});

check!(READING_A_FIFO_DOES_NOT_BLOCK, "reading_a_fifo_does_not_block", |sandbox| {
    let made = shell(sandbox, "rm -f fifo; mkfifo fifo").await?;
    if !made.success() {
        return Err(CheckFailure::Skip("no fifo can be made".to_owned()));
    }
    let read = tokio::time::timeout(std::time::Duration::from_secs(30), sandbox.read_file("fifo")).await;
    match read {
        Ok(Err(error)) => holds("the error is expected", !error.is_fatal()),
        Ok(Ok(bytes)) => equal(bytes.len(), 0),
        Err(_) => Err(CheckFailure::Fail("reading blocked".to_owned())),
    }
});

check!(A_WRITTEN_FILE_KEEPS_ITS_MODE, "a_written_file_keeps_its_mode", |sandbox| {
    shell(sandbox, "echo x > script.sh; chmod 755 script.sh").await?;
    sandbox.write_file("script.sh", b"#!/bin/sh\necho ran\n").await?;
    equal(shell(sandbox, "./script.sh").await?.stdout.as_str(), "ran\n")
});

check!(COMMANDS_SEE_WRITTEN_FILES, "commands_see_written_files", |sandbox| {
    sandbox.write_file("seen", b"by commands").await?;
    equal(shell(sandbox, "cat ./seen").await?.stdout.as_str(), "by commands")
});

check!(READING_SEES_WHAT_COMMANDS_WROTE, "reading_sees_what_commands_wrote", |sandbox| {
    shell(sandbox, "printf 'from a command' > made").await?;
    equal(sandbox.read_text("made").await?.as_str(), "from a command")
});
