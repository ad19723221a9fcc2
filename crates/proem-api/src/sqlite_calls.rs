//! The system calls that this library's SQLite makes for its files: which descriptors are its own, and a fresh start after
//! a fork.
//!
//! POSIX drops all locks of a process on a file when the process closes any descriptor of it. SQLite therefore knows its own
//! descriptors; it does not know those of a second SQLite in the process, such as the one in a language's standard library.
//! Each operation looks for such descriptors and refuses to go on, because the locks would be lost without a sign.
//!
//! After a fork, SQLite believes that the child has the locks of its parent. It recognises a file by device and inode; in
//! the child, both calls that tell it the device give another one, so that it takes locks of its own.
#![expect(unsafe_code, reason = "SQLite takes system calls as C functions, and descriptors are C integers")]

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use rusqlite::ffi::{SQLITE_OK, sqlite3_syscall_ptr, sqlite3_vfs_find};

use crate::failure::Failure;

/// The descriptors that this library's SQLite has opened.
static OWN: Mutex<BTreeSet<c_int>> = Mutex::new(BTreeSet::new());

/// The number of forks between the process that loaded this library and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The bits of a device number in which forks are counted. Devices of Linux do not use them.
const FORK_SHIFT: u32 = 48;

extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: SQLite gives a path that ends with NUL; the mode is an integer, as `open` wants it.
    let descriptor = unsafe { libc::open(path, flags, mode) };
    if descriptor >= 0 {
        OWN.lock().unwrap_or_else(PoisonError::into_inner).insert(descriptor);
    }
    descriptor
}

extern "C" fn close(descriptor: c_int) -> c_int {
    // Before the number is free for others.
    OWN.lock().unwrap_or_else(PoisonError::into_inner).remove(&descriptor);
    // SAFETY: SQLite closes descriptors that it has opened.
    unsafe { libc::close(descriptor) }
}

extern "C" fn fstat(descriptor: c_int, found: *mut libc::stat) -> c_int {
    // SAFETY: SQLite gives a place for the answer.
    unsafe { of_this_process(libc::fstat(descriptor, found), found) }
}

extern "C" fn stat(path: *const c_char, found: *mut libc::stat) -> c_int {
    // SAFETY: SQLite gives a path that ends with NUL, and a place for the answer.
    unsafe { of_this_process(libc::stat(path, found), found) }
}

/// Gives a file another device in each child, so that SQLite does not take it for one that its parent has locked.
///
/// # Safety
///
/// If `result` is 0, `found` points to an answer.
unsafe fn of_this_process(result: c_int, found: *mut libc::stat) -> c_int {
    let forks = FORKS.load(Ordering::Relaxed);
    if result == 0 && forks > 0 {
        // SAFETY: the call succeeded, so it wrote the answer.
        unsafe { (*found).st_dev ^= libc::dev_t::try_from(forks << FORK_SHIFT).unwrap_or_default() };
    }
    result
}

/// Tells SQLite to make its calls through this module. Must come before its first file is opened, in each process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    /// The process that called this last.
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    let last = PROCESS.swap(process, Ordering::Relaxed);
    // All files of one process must have one device number, and so it is counted once for each child.
    if last != 0 && last != process {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    ONCE.call_once(|| {
        // SAFETY: the types are those that SQLite documents for the calls of these names; it casts them back.
        let calls: [(&CStr, sqlite3_syscall_ptr); 4] = unsafe {
            [
                (c"open", erased(open as *const ())),
                (c"close", erased(close as *const ())),
                (c"fstat", erased(fstat as *const ())),
                (c"stat", erased(stat as *const ())),
            ]
        };
        // SAFETY: the default file system of SQLite lives as long as the process, and names end with NUL.
        unsafe {
            let files = sqlite3_vfs_find(std::ptr::null());
            let Some(set) = files.as_ref().and_then(|files| files.xSetSystemCall) else { return };
            for (name, call) in calls {
                // A SQLite that knows no such call keeps its own: then nothing is refused.
                if set(files, name.as_ptr(), call) != SQLITE_OK {
                    return;
                }
            }
        }
    });
}

/// Makes a system call of a function of another type.
///
/// # Safety
///
/// `call` must be a function of the type that SQLite casts the call to.
unsafe fn erased(call: *const ()) -> sqlite3_syscall_ptr {
    // SAFETY: pointers to functions have one size; the caller vouches for the type.
    unsafe { std::mem::transmute::<*const (), sqlite3_syscall_ptr>(call) }
}

/// The files of a store in this process, by identity.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreFiles {
    path: PathBuf,
    identities: Vec<(u64, u64)>,
}

impl StoreFiles {
    /// Finds the files that exist now: the database, its log, and the index of the log.
    pub(crate) fn find(path: &Path) -> Self {
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            fs::metadata(name).ok().map(|found| (found.dev(), found.ino()))
        };
        let identities = ["", "-wal", "-shm"].into_iter().filter_map(beside).collect();
        Self { path: path.to_owned(), identities }
    }

    /// Fails if this process has a descriptor of these files that is not SQLite's own here.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        // Other systems do not list the descriptors of a process like this.
        let Ok(listed) = fs::read_dir("/proc/self/fd") else { return Ok(()) };
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<c_int>().ok();
        let mut others = listed.filter_map(Result::ok).filter_map(number).filter(|one| self.is_foreign(*one));
        match others.next() {
            None => Ok(()),
            Some(descriptor) => {
                let path = self.path.display();
                let message = format!(
                    "this process has opened the store {path} a second time, with descriptor {descriptor}: when it is \
                     closed, the store loses its locks"
                );
                let hint = "close it, such as a connection of `sqlite3`, and then open the store; or use another process";
                Err(Failure::new("store_opened_twice", message).with_hint(hint))
            }
        }
    }

    fn is_foreign(&self, descriptor: c_int) -> bool {
        let mut found = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the answer has a place; a descriptor that was closed meanwhile gives an error.
        let found = unsafe {
            if libc::fstat(descriptor, found.as_mut_ptr()) != 0 {
                return false;
            }
            found.assume_init()
        };
        if !self.identities.contains(&(found.st_dev, found.st_ino)) {
            return false;
        }
        // SAFETY: the call takes no pointer. A descriptor that only names a file holds no lock.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        let is_path = flags >= 0 && flags & libc::O_PATH != 0;
        !is_path && !OWN.lock().unwrap_or_else(PoisonError::into_inner).contains(&descriptor)
    }
}
