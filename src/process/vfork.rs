//! A child process that prepares itself, and then becomes a program. The only unsafe code of the program.
//!
//! Only a process itself can ask for a signal at its parent's death or enter a directory, which `posix_spawn` cannot
//! order; after `fork`, the kernel would copy our page tables. So this does what `posix_spawn` does inside: the child
//! uses our memory, and our thread waits until the child runs the program or ends.
#![expect(
    unsafe_code,
    reason = "no library runs code of ours between vfork and exec"
)]

use std::{
    borrow::Cow,
    ffi::{CStr, CString, c_char, c_int},
    io,
    mem::MaybeUninit,
    os::fd::BorrowedFd,
    ptr,
    sync::atomic::{AtomicI32, Ordering},
};

use nix::{
    libc,
    sched::{CloneFlags, clone},
    sys::signal::{SigSet, SigmaskHow},
};
use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{
        Pid, Signal, WaitId, WaitIdOptions, chdir, getpid, getppid,
        set_parent_process_death_signal, setpgid, waitid,
    },
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

use super::label::Label;

/// Ties a command and its descendants to this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChildLifetime {
    pub(crate) label: Label,
    /// The kernel sends this to the command itself when our thread ends, so the main thread must start it.
    pub(crate) at_our_death: Signal,
}

/// The program that a child runs, and the steps before it.
pub(super) struct ChildSetup<'a> {
    pub(super) program: CString,
    pub(super) argv: Vec<CString>,
    pub(super) environment: Vec<Cow<'a, CStr>>,
    pub(super) directory: Option<CString>,
    /// These become its standard streams; `None` leaves ours.
    pub(super) streams: [Option<BorrowedFd<'a>>; 3],
    /// Stays open in the program.
    pub(super) kept: Option<BorrowedFd<'a>>,
    pub(super) lifetime: Option<ChildLifetime>,
    /// The signals that get their default action.
    pub(super) defaults: &'a [c_int],
}

/// Enough for the system calls of a child.
const STACK: usize = 32 << 10;

impl ChildSetup<'_> {
    /// Returns the pid of the child once it runs the program, which leads a process group.
    pub(super) fn start(&self) -> io::Result<Pid> {
        let (argv, environment) = (pointers(&self.argv), pointers(&self.environment));
        let parent = getpid();
        let failure = AtomicI32::new(0);
        let mut stack = vec![0; STACK];
        let child = || {
            let error = match self.prepare(parent) {
                Ok(()) => self.execute(&argv, &environment),
                Err(error) => error,
            };
            failure.store(error.raw_os_error(), Ordering::Relaxed);
            // SAFETY: this ends the child and runs nothing of ours.
            unsafe { libc::_exit(127) }
        };
        // No handler of ours may run in the child.
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        // SAFETY: our thread sleeps while the child uses its memory. The child neither allocates, nor locks, nor
        // panics, and it never returns.
        let pid = unsafe { clone(Box::new(child), &mut stack, flags, Some(libc::SIGCHLD)) };
        mask.thread_set_mask()?;
        let pid = Pid::from_raw(pid?.as_raw()).ok_or(io::ErrorKind::InvalidData)?;
        match failure.into_inner() {
            0 => Ok(pid),
            error => {
                // Nothing to reap where our parent made us ignore the end of children.
                let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
                Err(io::Error::from_raw_os_error(error))
            }
        }
    }

    /// Runs in the child.
    fn prepare(&self, parent: Pid) -> rustix::io::Result<()> {
        setpgid(None, None)?;
        self.reset_signals();
        if let Some(input) = self.streams[0] {
            dup2_stdin(input)?;
        }
        if let Some(output) = self.streams[1] {
            dup2_stdout(output)?;
        }
        if let Some(errors) = self.streams[2] {
            dup2_stderr(errors)?;
        }
        if let Some(kept) = self.kept {
            fcntl_setfd(kept, FdFlags::empty())?;
        }
        if let Some(directory) = &self.directory {
            chdir(directory.as_c_str())?;
        }
        if let Some(lifetime) = self.lifetime {
            lifetime.label.put_on();
            set_parent_process_death_signal(Some(lifetime.at_our_death))?;
            // Our parent may have died before.
            if getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH);
            }
        }
        Ok(())
    }

    /// Handlers of ours must not run in the child, and Rust programs ignore SIGPIPE.
    fn reset_signals(&self) {
        // SAFETY: zeroes are the default action with an empty mask.
        let default = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
        for &signal in self.defaults {
            // SAFETY: no signal arrives here: all are blocked. glibc refuses its own signals.
            unsafe { libc::sigaction(signal, &raw const default, ptr::null_mut()) };
        }
    }

    /// Returns only if it cannot become the program.
    fn execute(&self, argv: &[*const c_char], environment: &[*const c_char]) -> rustix::io::Errno {
        // SAFETY: these are texts that `self` owns, in lists that end with a null pointer.
        unsafe {
            let mut none = MaybeUninit::zeroed();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
            libc::execve(self.program.as_ptr(), argv.as_ptr(), environment.as_ptr());
            rustix::io::Errno::from_raw_os_error(*libc::__errno_location())
        }
    }
}

/// Returns pointers to the texts, and a null pointer at the end.
fn pointers<T: AsRef<CStr>>(texts: &[T]) -> Vec<*const c_char> {
    let texts = texts.iter().map(|it| it.as_ref().as_ptr());
    texts.chain([ptr::null()]).collect()
}
