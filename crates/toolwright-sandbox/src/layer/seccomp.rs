//! The filter of system calls: which are refused, and the BPF program that refuses them.
//!
//! The program is ours from the table to the instruction, because two checks matter that ready-made filters
//! leave out: calls made through another architecture's entry (i386, x32) kill the process, and numbers this
//! table does not know do not exist. Everything the kernel has that can mount, trace, load, re-time or
//! re-route is refused; ordinary programs do not notice.

use crate::policy::Network;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyscallVerdict {
    /// It goes through.
    Allow,
    /// It fails with this error.
    Errno(i32),
    /// The process is killed.
    Kill,
}

impl SyscallVerdict {
    /// The value the BPF program returns.
    pub fn code(self) -> u32 {
        match self {
            SyscallVerdict::Allow => 0x7fff_0000,
            SyscallVerdict::Errno(errno) => 0x0005_0000 | (errno as u32 & 0xffff),
            SyscallVerdict::Kill => 0x8000_0000,
        }
    }
}

const EPERM: SyscallVerdict = SyscallVerdict::Errno(libc::EPERM);
const ENOSYS: SyscallVerdict = SyscallVerdict::Errno(libc::ENOSYS);

/// The entry point programs of this build use.
#[cfg(target_arch = "x86_64")]
pub const ARCH: u32 = 0xc000_003e;
/// The entry point programs of this build use.
#[cfg(target_arch = "aarch64")]
pub const ARCH: u32 = 0xc000_00b7;

/// The highest call number this table was written for (Linux 6.18); later ones do not exist inside.
pub const LAST_KNOWN: u32 = 469;

/// Bit 30 marks an x32 call on x86_64.
const X32: u32 = 0x4000_0000;

/// Calls that are refused whatever their arguments.
pub const REFUSED: &[(i64, SyscallVerdict)] = &[
    // Mounts and roots.
    (libc::SYS_mount, EPERM),
    (libc::SYS_umount2, EPERM),
    (libc::SYS_pivot_root, EPERM),
    (libc::SYS_chroot, EPERM),
    (libc::SYS_move_mount, EPERM),
    (libc::SYS_open_tree, EPERM),
    (libc::SYS_fsopen, EPERM),
    (libc::SYS_fsconfig, EPERM),
    (libc::SYS_fsmount, EPERM),
    (libc::SYS_fspick, EPERM),
    (libc::SYS_mount_setattr, EPERM),
    (467, EPERM), // open_tree_attr
    (libc::SYS_quotactl, EPERM),
    (libc::SYS_quotactl_fd, EPERM),
    // Namespaces. `clone3` hides its flags behind a pointer; without it, libc falls back to `clone`, which is
    // looked at.
    (libc::SYS_unshare, EPERM),
    (libc::SYS_setns, EPERM),
    (libc::SYS_clone3, ENOSYS),
    // Other processes.
    (libc::SYS_ptrace, EPERM),
    (libc::SYS_process_vm_readv, EPERM),
    (libc::SYS_process_vm_writev, EPERM),
    (libc::SYS_process_madvise, EPERM),
    (libc::SYS_pidfd_getfd, EPERM),
    (libc::SYS_kcmp, EPERM),
    // Ways round the other checks. `openat2` hides its mode behind a pointer, where a set-user-id bit could
    // be.
    (libc::SYS_io_uring_setup, ENOSYS),
    (libc::SYS_io_uring_enter, ENOSYS),
    (libc::SYS_io_uring_register, ENOSYS),
    (libc::SYS_openat2, ENOSYS),
    (libc::SYS_open_by_handle_at, EPERM),
    (libc::SYS_name_to_handle_at, EPERM),
    // The kernel itself.
    (libc::SYS_bpf, EPERM),
    (libc::SYS_perf_event_open, EPERM),
    (libc::SYS_userfaultfd, EPERM),
    (libc::SYS_fanotify_init, EPERM),
    (libc::SYS_fanotify_mark, EPERM),
    (libc::SYS_add_key, EPERM),
    (libc::SYS_request_key, EPERM),
    (libc::SYS_keyctl, EPERM),
    (libc::SYS_init_module, EPERM),
    (libc::SYS_finit_module, EPERM),
    (libc::SYS_delete_module, EPERM),
    (libc::SYS_kexec_load, EPERM),
    (libc::SYS_kexec_file_load, EPERM),
    (libc::SYS_reboot, EPERM),
    (libc::SYS_swapon, EPERM),
    (libc::SYS_swapoff, EPERM),
    (libc::SYS_syslog, EPERM),
    (libc::SYS_acct, EPERM),
    (libc::SYS_vhangup, EPERM),
    (libc::SYS_lookup_dcookie, EPERM),
    (libc::SYS_nfsservctl, ENOSYS),
    // Clocks and names.
    (libc::SYS_settimeofday, EPERM),
    (libc::SYS_clock_settime, EPERM),
    (libc::SYS_adjtimex, EPERM),
    (libc::SYS_clock_adjtime, EPERM),
    (libc::SYS_sethostname, EPERM),
    (libc::SYS_setdomainname, EPERM),
];

/// Refused calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
pub const REFUSED_HERE: &[(i64, SyscallVerdict)] = &[
    (libc::SYS_iopl, EPERM),
    (libc::SYS_ioperm, EPERM),
    (libc::SYS_modify_ldt, EPERM),
    (libc::SYS_uselib, ENOSYS),
    (libc::SYS__sysctl, ENOSYS),
    (libc::SYS_sysfs, ENOSYS),
    (libc::SYS_ustat, ENOSYS),
    (174, ENOSYS), // create_module
    (177, ENOSYS), // get_kernel_syms
    (178, ENOSYS), // query_module
    (libc::SYS_afs_syscall, ENOSYS),
    (libc::SYS_tuxcall, ENOSYS),
    (libc::SYS_security, ENOSYS),
    (libc::SYS_getpmsg, ENOSYS),
    (libc::SYS_putpmsg, ENOSYS),
];
/// Refused calls that only this architecture has.
#[cfg(target_arch = "aarch64")]
pub const REFUSED_HERE: &[(i64, SyscallVerdict)] = &[];

/// A test of one argument's low 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentTest {
    /// Some of these bits are set.
    AnyBit(u32),
    /// It is this value.
    Is(u32),
    /// It is not one of these values.
    NotIn(&'static [u32]),
    /// The masked bits have this value.
    Masked(u32, u32),
    /// It is this value, and argument `pointer` is not null.
    With {
        /// The value.
        is: u32,
        /// The argument with the pointer.
        pointer: u8,
    },
    /// A set-id bit in a mode that counts: the flags in argument `flags` ask for a new file. Otherwise the
    /// mode is whatever happened to be in the register.
    NewSetId {
        /// The argument with the flags.
        flags: u8,
    },
}

/// A call refused for some values of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyscallRule {
    /// The call.
    pub call: i64,
    /// Which argument, from 0.
    pub argument: u8,
    /// When it is refused.
    pub test: ArgumentTest,
    /// How.
    pub verdict: SyscallVerdict,
}

const fn rule(call: i64, argument: u8, test: ArgumentTest) -> SyscallRule {
    SyscallRule { call, argument, test, verdict: EPERM }
}

/// All namespace flags of `clone`, `CLONE_NEWTIME` included.
const NAMESPACES: ArgumentTest = ArgumentTest::AnyBit(0x7e02_0080);
/// A set-user-id or set-group-id bit: a program left behind with one would lend its owner's rights on the
/// host.
const SET_ID: ArgumentTest = ArgumentTest::AnyBit(SET_ID_BITS);
const SET_ID_BITS: u32 = 0o6000;
/// The open flags that make a file: `O_CREAT`, and the bit of `O_TMPFILE` that is not `O_DIRECTORY`.
const MAKES_FILE: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// Calls that are refused for some arguments.
pub const RULES: &[SyscallRule] = &[
    rule(libc::SYS_clone, 0, NAMESPACES),
    rule(libc::SYS_ioctl, 1, ArgumentTest::Is(libc::TIOCSTI as u32)),
    rule(libc::SYS_ioctl, 1, ArgumentTest::Is(libc::TIOCLINUX as u32)),
    rule(libc::SYS_ioctl, 1, ArgumentTest::Is(libc::TIOCSETD as u32)),
    // A lease on a read-only file would block writers outside the sandbox.
    rule(libc::SYS_fcntl, 1, ArgumentTest::Is(libc::F_SETLEASE as u32)),
    rule(libc::SYS_personality, 0, ArgumentTest::NotIn(&[0, 0x0004_0000, u32::MAX])),
    rule(libc::SYS_mknodat, 2, ArgumentTest::Masked(libc::S_IFMT, libc::S_IFCHR)),
    rule(libc::SYS_mknodat, 2, ArgumentTest::Masked(libc::S_IFMT, libc::S_IFBLK)),
    rule(libc::SYS_mknodat, 2, SET_ID),
    rule(libc::SYS_fchmod, 1, SET_ID),
    rule(libc::SYS_fchmodat, 2, SET_ID),
    rule(452, 2, SET_ID), // fchmodat2
    rule(libc::SYS_openat, 3, ArgumentTest::NewSetId { flags: 2 }),
    rule(libc::SYS_mkdirat, 2, SET_ID),
    // The limit on core dumps is 1 and stays so: at 0 a crash would start the host's handler of crashes.
    // Programs that want none (and some refuse to run with any) get the answer that they have none.
    SyscallRule {
        call: libc::SYS_setrlimit,
        argument: 0,
        test: ArgumentTest::Is(CORE),
        verdict: SyscallVerdict::Errno(0),
    },
    SyscallRule {
        call: libc::SYS_prlimit64,
        argument: 1,
        test: ArgumentTest::With { is: CORE, pointer: 2 },
        verdict: SyscallVerdict::Errno(0),
    },
];
/// `RLIMIT_CORE`, as the kernel has it: C libraries do not agree on its type.
const CORE: u32 = 4;

/// The older forms of the same calls.
#[cfg(target_arch = "x86_64")]
pub const RULES_HERE: &[SyscallRule] = &[
    rule(libc::SYS_mknod, 1, ArgumentTest::Masked(libc::S_IFMT, libc::S_IFCHR)),
    rule(libc::SYS_mknod, 1, ArgumentTest::Masked(libc::S_IFMT, libc::S_IFBLK)),
    rule(libc::SYS_mknod, 1, SET_ID),
    rule(libc::SYS_chmod, 1, SET_ID),
    rule(libc::SYS_open, 2, ArgumentTest::NewSetId { flags: 1 }),
    rule(libc::SYS_creat, 1, SET_ID),
    rule(libc::SYS_mkdir, 1, SET_ID),
];
/// The older forms of the same calls.
#[cfg(target_arch = "aarch64")]
pub const RULES_HERE: &[SyscallRule] = &[];

/// Socket families by network mode: with the network off only local sockets, otherwise also IP and the
/// netlink that libc asks about interfaces.
pub fn network_rules(network: &Network) -> Vec<SyscallRule> {
    const LOCAL: &[u32] = &[libc::AF_UNIX as u32];
    const LOOPBACK: &[u32] =
        &[libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32, libc::AF_NETLINK as u32];
    let families = if *network == Network::Off { LOCAL } else { LOOPBACK };
    let verdict = SyscallVerdict::Errno(libc::EACCES);
    [libc::SYS_socket, libc::SYS_socketpair]
        .map(|call| SyscallRule { call, argument: 0, test: ArgumentTest::NotIn(families), verdict })
        .to_vec()
}

/// What the table says about a call, argument by argument. The BPF program must say the same; a test compares
/// them.
pub fn decide(network: &Network, arch: u32, number: u32, arguments: [u64; 6]) -> SyscallVerdict {
    if arch != ARCH || (cfg!(target_arch = "x86_64") && number & X32 != 0) {
        return SyscallVerdict::Kill;
    }
    if number > LAST_KNOWN {
        return ENOSYS;
    }
    let refused = REFUSED.iter().chain(REFUSED_HERE).find(|(call, _)| *call == i64::from(number));
    if let Some((_, verdict)) = refused {
        return *verdict;
    }
    let network = network_rules(network);
    for rule in RULES.iter().chain(RULES_HERE).chain(&network) {
        let argument = |at: u8| arguments.get(usize::from(at)).copied().unwrap_or_default() as u32;
        let value = argument(rule.argument);
        let hit = match rule.test {
            ArgumentTest::AnyBit(bits) => value & bits != 0,
            ArgumentTest::Is(wanted) => value == wanted,
            ArgumentTest::NotIn(list) => !list.contains(&value),
            ArgumentTest::Masked(mask, wanted) => value & mask == wanted,
            ArgumentTest::With { is, pointer } => {
                value == is && arguments.get(usize::from(pointer)).is_some_and(|pointer| *pointer != 0)
            }
            ArgumentTest::NewSetId { flags } => argument(flags) & MAKES_FILE != 0 && value & SET_ID_BITS != 0,
        };
        if rule.call == i64::from(number) && hit {
            return rule.verdict;
        }
    }
    SyscallVerdict::Allow
}

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_GREATER: u16 = 0x25; // BPF_JMP | BPF_JGT | BPF_K
const JUMP_SET: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// The BPF program for a network mode.
///
/// Refusals are written next to their tests, so every jump is short and the program needs no labels: `skip`
/// counts the instructions a test jumps over when it does not apply.
pub fn program(network: &Network) -> Vec<libc::sock_filter> {
    let mut code = vec![
        plain(LOAD, 4),
        jump(JUMP_EQUAL, ARCH, 1, 0),
        plain(RETURN, SyscallVerdict::Kill.code()),
        plain(LOAD, 0),
    ];
    if cfg!(target_arch = "x86_64") {
        code.extend([jump(JUMP_SET, X32, 0, 1), plain(RETURN, SyscallVerdict::Kill.code())]);
    }
    code.extend([jump(JUMP_GREATER, LAST_KNOWN, 0, 1), plain(RETURN, ENOSYS.code())]);
    for (call, verdict) in REFUSED.iter().chain(REFUSED_HERE) {
        code.extend([jump(JUMP_EQUAL, *call as u32, 0, 1), plain(RETURN, verdict.code())]);
    }
    let network = network_rules(network);
    let rules: Vec<&SyscallRule> = RULES.iter().chain(RULES_HERE).chain(&network).collect();
    for group in rules.chunk_by(|a, b| a.call == b.call) {
        let body: Vec<_> = group.iter().flat_map(|rule| tests(rule)).collect();
        let Some(first) = group.first() else { continue };
        // Past the body and its final `allow`.
        code.push(jump(JUMP_EQUAL, first.call as u32, 0, body.len() as u8 + 1));
        code.extend(body);
        code.push(plain(RETURN, SyscallVerdict::Allow.code()));
    }
    code.push(plain(RETURN, SyscallVerdict::Allow.code()));
    code
}

/// The instructions of one rule: load the argument, test it, refuse or fall through.
fn tests(rule: &SyscallRule) -> Vec<libc::sock_filter> {
    let low_word = |argument: u8| 16 + 8 * u32::from(argument);
    let refuse = plain(RETURN, rule.verdict.code());
    let mut code = vec![plain(LOAD, low_word(rule.argument))];
    match rule.test {
        ArgumentTest::AnyBit(bits) => code.extend([jump(JUMP_SET, bits, 0, 1), refuse]),
        ArgumentTest::Is(value) => code.extend([jump(JUMP_EQUAL, value, 0, 1), refuse]),
        ArgumentTest::NotIn(list) => {
            let count = list.len() as u8;
            code.extend(list.iter().zip(0u8..).map(|(value, at)| jump(JUMP_EQUAL, *value, count - at, 0)));
            code.push(refuse);
        }
        ArgumentTest::Masked(mask, value) => {
            code.extend([plain(AND, mask), jump(JUMP_EQUAL, value, 0, 1), refuse]);
        }
        ArgumentTest::With { is, pointer } => code.extend([
            jump(JUMP_EQUAL, is, 0, 5),
            plain(LOAD, low_word(pointer)),
            jump(JUMP_EQUAL, 0, 0, 2),
            plain(LOAD, low_word(pointer) + 4),
            jump(JUMP_EQUAL, 0, 1, 0),
            refuse,
        ]),
        ArgumentTest::NewSetId { flags } => code.extend([
            jump(JUMP_SET, SET_ID_BITS, 0, 3),
            plain(LOAD, low_word(flags)),
            jump(JUMP_SET, MAKES_FILE, 0, 1),
            refuse,
        ]),
    }
    code
}

fn plain(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

fn jump(code: u16, k: u32, yes: u8, no: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt: yes, jf: no, k }
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
