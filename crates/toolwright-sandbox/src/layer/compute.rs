//! A filter for a process that already holds everything it needs: it computes, allocates memory, and reads
//! and writes the descriptors it has. It opens no file, no socket and no process.

use std::io;

use super::seccomp::{ARCH, SyscallVerdict};
use crate::sys::process::{filter, no_new_privileges};

/// The calls that go through; everything else fails with `EPERM`.
const ALLOWED: &[i64] = &[
    // Descriptors that are open.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_ppoll,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_madvise,
    // Threads that run, and their ends.
    libc::SYS_futex,
    libc::SYS_membarrier,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Time and chance.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
];

/// Bit 30 marks an x32 call on x86_64.
const X32: u32 = 0x4000_0000;

/// Restricts this process to computing, for good. Call it while the process has one thread.
pub fn only_compute() -> io::Result<()> {
    no_new_privileges()?;
    filter(&program())
}

fn program() -> Vec<libc::sock_filter> {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const JUMP_SET: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    let plain = |code: u16, k: u32| libc::sock_filter { code, jt: 0, jf: 0, k };
    let jump = |code: u16, k: u32, yes: u8, no: u8| libc::sock_filter { code, jt: yes, jf: no, k };
    let mut code = vec![
        plain(LOAD, 4),
        jump(JUMP_EQUAL, ARCH, 1, 0),
        plain(RETURN, SyscallVerdict::Kill.code()),
        plain(LOAD, 0),
    ];
    if cfg!(target_arch = "x86_64") {
        code.extend([jump(JUMP_SET, X32, 0, 1), plain(RETURN, SyscallVerdict::Kill.code())]);
    }
    for call in ALLOWED {
        code.extend([jump(JUMP_EQUAL, *call as u32, 0, 1), plain(RETURN, SyscallVerdict::Allow.code())]);
    }
    code.push(plain(RETURN, SyscallVerdict::Errno(libc::EPERM).code()));
    code
}
