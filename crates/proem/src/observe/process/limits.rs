//! Kernel limits for a running program, and a test that tells a program that waits for a FIFO from a busy one.

use rustix::process::Pid;

/// Limits on the resources of a program. Each limit is for one process: its children have the same limits again.
///
/// Memory is limited by `RLIMIT_DATA`, which counts allocations and not mapped files: packs and indexes of large
/// repositories are mapped completely, and `RLIMIT_AS` would count them. `RLIMIT_NPROC` is not used: it counts all
/// processes of the user, so a user with many could start none, and root is exempt.
///
/// The limits are set from outside right after the program was started, because setting them in the child takes
/// `unsafe`. A program can take little in that moment, and every later allocation and write counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) memory_bytes_max: u64,
    /// The largest file that it may write.
    pub(crate) file_bytes_max: u64,
}

impl Limits {
    /// Sets the limits of a program that was just started. A program that has already ended needs none.
    #[cfg(target_os = "linux")]
    pub(super) fn set(self, id: Pid) {
        use rustix::process::{Resource, Rlimit, prlimit};
        for (resource, most) in
            [(Resource::Data, self.memory_bytes_max), (Resource::Fsize, self.file_bytes_max)]
        {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            let _ = prlimit(Some(id), resource, limit);
        }
    }

    /// Does nothing: other systems cannot limit a program from outside.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn set(self, _: Pid) {}
}

/// Tells whether a program waits until the other end of a FIFO is opened. That never happens: the FIFO is a file of a
/// repository.
#[cfg(target_os = "linux")]
pub(super) fn waits_for_fifo(id: Pid) -> bool {
    // The kernel function in which its first thread sleeps; not every kernel reports it.
    let place = std::fs::read_to_string(format!("/proc/{}/wchan", id.as_raw_nonzero()));
    place.is_ok_and(|place| matches!(place.as_str(), "wait_for_partner" | "fifo_open"))
}

/// Returns false where the system cannot be queried; the deadline ends the wait there.
#[cfg(not(target_os = "linux"))]
pub(super) const fn waits_for_fifo(_: Pid) -> bool {
    false
}
