//! The pages of this program's own file.

use std::ops::Range;

/// A part of this process's memory, as the kernel lists it.
#[derive(Debug, PartialEq)]
struct Mapping {
    addresses: Range<usize>,
    /// `r-xp`, `rw-p` and so on.
    access: String,
    /// Device and number of the file.
    file: String,
    /// How many kilobytes of it are no longer the file's.
    own: usize,
}

/// Lets go of the pages of the program's file that this process holds, and says how many bytes were looked
/// through. What is needed again comes back from the file, a few pages at a time.
///
/// Starting takes far more of a program than waiting does: a server that has made itself ready gives back ten
/// megabytes and more. Does nothing where the kernel does not say what is held.
pub fn release_program_pages() -> usize {
    let Ok(listed) = std::fs::read_to_string("/proc/self/smaps") else { return 0 };
    let mappings = parse(&listed);
    let here = release_program_pages as *const () as usize;
    let Some(program) = mappings.iter().find(|mapping| mapping.addresses.contains(&here)) else { return 0 };
    let clean = mappings.iter().filter(|mapping| {
        mapping.file == program.file
            && mapping.own == 0
            && mapping.access.starts_with('r')
            && !mapping.access.contains('w')
            && mapping.access.ends_with('p')
    });
    let mut released = 0;
    for Mapping { addresses, .. } in clean {
        // SAFETY: this is a part of the running program, so it is never unmapped; it cannot be written to,
        // and no page of it ever was, so the next access finds the same bytes in the file.
        let done = unsafe {
            libc::madvise(addresses.start as *mut libc::c_void, addresses.len(), libc::MADV_DONTNEED)
        };
        if done == 0 {
            released += addresses.len();
        }
    }
    released
}

/// Reads `/proc/self/smaps`: a line for each mapping, followed by lines of numbers.
fn parse(listed: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in listed.lines() {
        if let Some(own) = line.strip_prefix("Anonymous:") {
            let own = own.trim().trim_end_matches(" kB").parse();
            if let (Some(last), Ok(own)) = (mappings.last_mut(), own) {
                last.own = own;
            }
            continue;
        }
        let mut words = line.split_ascii_whitespace();
        let addresses = words.next().and_then(|word| {
            let (start, end) = word.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some(number(start)?..number(end)?)
        });
        let (Some(addresses), Some(access), Some(_offset), Some(device), Some(number)) =
            (addresses, words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        // Until the numbers say otherwise, nothing of it is the file's.
        let (access, file, own) = (access.to_owned(), format!("{device} {number}"), usize::MAX);
        mappings.push(Mapping { addresses, access, file, own });
    }
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_with_what_was_written_to_them() {
        let listed = "55d0a000-55d0c000 r-xp 0001 fe:00 42    /usr/bin/a program\nSize: 8 kB\nAnonymous: 0 kB\nVmFlags: rd ex\n\
                      7f00-8000 rw-p 0000 00:00 0\nAnonymous: 4 kB\n";
        let mapping = |addresses, access: &str, file: &str, own| Mapping {
            addresses,
            access: access.into(),
            file: file.into(),
            own,
        };
        assert_eq!(
            parse(listed),
            [
                mapping(0x55d0_a000..0x55d0_c000, "r-xp", "fe:00 42", 0),
                mapping(0x7f00..0x8000, "rw-p", "00:00 0", 4)
            ]
        );
        assert_eq!(parse("1000-2000 r-xp 0 0:0 1\n")[0].own, usize::MAX);
    }

    #[test]
    fn a_program_goes_on_without_its_pages() {
        static TEXT: &str = "still here";
        for _ in 0..3 {
            assert!(release_program_pages() > 0);
            assert_eq!(TEXT.to_uppercase(), "STILL HERE");
        }
    }
}
