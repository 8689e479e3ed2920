//! Runs the real program in a small BPF interpreter and compares it with the table, number by number.

use std::collections::BTreeSet;

use super::*;

const I386: u32 = 0x4000_0003;

/// What a call looks like to a filter.
struct SyscallSample {
    number: u32,
    arch: u32,
    arguments: [u64; 6],
}

impl SyscallSample {
    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.arch,
            16..64 => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) { argument as u32 } else { (argument >> 32) as u32 }
            }
            _ => panic!("the program reads outside the call at {offset}"),
        }
    }
}

/// Runs a program, noting which instructions were reached.
fn interpret(code: &[libc::sock_filter], call: &SyscallSample, reached: &mut BTreeSet<usize>) -> u32 {
    let (mut at, mut value) = (0, 0u32);
    loop {
        reached.insert(at);
        let step = &code[at];
        at += 1;
        let mut branch = |taken: bool| at += usize::from(if taken { step.jt } else { step.jf });
        match step.code {
            LOAD => value = call.word(step.k),
            AND => value &= step.k,
            JUMP_EQUAL => branch(value == step.k),
            JUMP_GREATER => branch(value > step.k),
            JUMP_SET => branch(value & step.k != 0),
            RETURN => return step.k,
            other => panic!("unknown instruction {other:#x}"),
        }
    }
}

/// Argument values that make every test of the table go both ways.
fn telling_values() -> Vec<u64> {
    let mut values: Vec<u64> =
        vec![0, 1, 2, 10, 16, 17, 40, 0xffff_ffff, u64::MAX, 0x0004_0000, 0o644, 0o755];
    values.extend((0..64).map(|bit| 1u64 << bit));
    values.extend([libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD, libc::TCGETS]);
    values.extend([libc::TIOCSTI | 1 << 40, 0o104_755, 0o4755, 0o2755, 0o6777]);
    values.extend(
        [libc::S_IFCHR, libc::S_IFBLK, libc::S_IFIFO, libc::S_IFREG].map(|kind| u64::from(kind | 0o644)),
    );
    values
}

#[test]
fn the_program_is_the_table_for_every_number_of_every_entry() {
    for network in [Network::Off, Network::Loopback] {
        let code = program(&network);
        let mut reached = BTreeSet::new();
        let mut compared = 0u32;
        for (arch, offset) in [(ARCH, 0), (ARCH, X32), (I386, 0)] {
            for number in (0..1024).chain([1 << 29, u32::MAX >> 2]) {
                let ruled = RULES.iter().chain(RULES_HERE).any(|rule| rule.call == number as i64)
                    || network_rules(&network).iter().any(|rule| rule.call == number as i64);
                let number = number | offset;
                let values = telling_values();
                for value in values.into_iter().take(if ruled { usize::MAX } else { 3 }) {
                    for argument in 0..24 {
                        // Some tests look at two arguments: the others are nothing, `O_CREAT`, a limit, or a
                        // pointer whose lower half is nothing.
                        let others = [0, libc::O_CREAT as u64, u64::from(CORE), 1 << 32];
                        let mut arguments = [others[argument / 6]; 6];
                        let argument = argument % 6;
                        arguments[argument] = value;
                        let call = SyscallSample { number, arch, arguments };
                        let got = interpret(&code, &call, &mut reached);
                        let want = decide(&network, arch, number, arguments).code();
                        assert_eq!(
                            got, want,
                            "arch {arch:#x} number {number} argument {argument} = {value:#x}"
                        );
                        compared += 1;
                    }
                }
            }
        }
        assert_eq!(reached.len(), code.len(), "some instructions are never reached");
        assert!(compared > 100_000);
        assert!(code.len() < 4096, "the kernel's limit");
    }
}

#[test]
fn other_entries_and_unknown_numbers_never_get_through() {
    for number in 0..1024 {
        assert_eq!(decide(&Network::Off, I386, number, [0; 6]), SyscallVerdict::Kill);
        if cfg!(target_arch = "x86_64") {
            assert_eq!(decide(&Network::Off, ARCH, number | X32, [0; 6]), SyscallVerdict::Kill);
        }
    }
    for number in LAST_KNOWN + 1..1024 {
        assert_eq!(decide(&Network::Off, ARCH, number, [0; 6]), SyscallVerdict::Errno(libc::ENOSYS));
    }
}

#[test]
fn ordinary_calls_go_through() {
    for call in
        [libc::SYS_read, libc::SYS_write, libc::SYS_execve, libc::SYS_mmap, libc::SYS_futex, libc::SYS_clone]
    {
        assert_eq!(decide(&Network::Off, ARCH, call as u32, [0; 6]), SyscallVerdict::Allow);
    }
    let unix = [libc::AF_UNIX as u64, 0, 0, 0, 0, 0];
    let inet = [libc::AF_INET as u64, 0, 0, 0, 0, 0];
    let socket = libc::SYS_socket as u32;
    assert_eq!(decide(&Network::Off, ARCH, socket, unix), SyscallVerdict::Allow);
    assert_eq!(decide(&Network::Off, ARCH, socket, inet), SyscallVerdict::Errno(libc::EACCES));
    assert_eq!(decide(&Network::Loopback, ARCH, socket, inet), SyscallVerdict::Allow);
}

#[test]
fn leases_cannot_be_taken_and_other_control_of_files_works() {
    let fcntl =
        |command: i32| decide(&Network::Off, ARCH, libc::SYS_fcntl as u32, [3, command as u64, 0, 0, 0, 0]);
    assert_eq!(fcntl(libc::F_SETLEASE), SyscallVerdict::Errno(libc::EPERM));
    for command in [libc::F_GETFL, libc::F_SETFL, libc::F_DUPFD_CLOEXEC, libc::F_OFD_SETLK, libc::F_GETLEASE]
    {
        assert_eq!(fcntl(command), SyscallVerdict::Allow);
    }
}

#[test]
fn the_limit_on_core_dumps_is_read_and_never_set() {
    let prlimit = |resource: u32, new: u64| {
        decide(&Network::Off, ARCH, libc::SYS_prlimit64 as u32, [0, resource.into(), new, 0, 0, 0])
    };
    assert_eq!(CORE, libc::RLIMIT_CORE);
    assert_eq!(prlimit(CORE, 0), SyscallVerdict::Allow);
    assert_eq!(prlimit(CORE, 1 << 32), SyscallVerdict::Errno(0));
    assert_eq!(prlimit(libc::RLIMIT_NOFILE, 4096), SyscallVerdict::Allow);
    let set = decide(&Network::Off, ARCH, libc::SYS_setrlimit as u32, [CORE.into(), 4096, 0, 0, 0, 0]);
    assert_eq!(set, SyscallVerdict::Errno(0));
}

#[test]
fn no_call_is_listed_twice() {
    let mut seen = BTreeSet::new();
    for (call, _) in REFUSED.iter().chain(REFUSED_HERE) {
        assert!(seen.insert(*call), "call {call} is listed twice");
    }
}
