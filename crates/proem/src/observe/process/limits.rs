//! What the kernel lets a running program take, and how a program that waits for a FIFO is told from a busy one.

use rustix::process::Pid;

/// What a program may take of the machine. Each limit is for one process: what a program starts has the same again.
///
/// Memory is limited by `RLIMIT_DATA`, which counts what a program allocates and not the files that it maps: packs and
/// indexes of large repositories are mapped whole, and `RLIMIT_AS` would count them. There is no `RLIMIT_NPROC`: it counts
/// all processes of the user, so a user with many would get none, and root is not bound by it.
///
/// The limits are set from here right after the program was started, because setting them in between takes `unsafe`. What a
/// program can take in that moment is little, and every allocation and write after it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) memory_bytes_max: u64,
    /// The largest file that it may write.
    pub(crate) file_bytes_max: u64,
}

impl Limits {
    /// Sets the limits of a program that was just started. One that has ended already needs none.
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

    /// Elsewhere a program cannot be limited from outside.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn set(self, _: Pid) {}
}

/// Tells whether a program waits for somebody to open the other end of a FIFO. Nobody will: it opened a file of a repository.
#[cfg(target_os = "linux")]
pub(super) fn waits_for_fifo(id: Pid) -> bool {
    // The kernel's function in which its first thread sleeps; not every kernel tells it.
    let place = std::fs::read_to_string(format!("/proc/{}/wchan", id.as_raw_nonzero()));
    place.is_ok_and(|place| matches!(place.as_str(), "wait_for_partner" | "fifo_open"))
}

/// Not every system can be asked; the deadline ends the wait there.
#[cfg(not(target_os = "linux"))]
pub(super) const fn waits_for_fifo(_: Pid) -> bool {
    false
}
