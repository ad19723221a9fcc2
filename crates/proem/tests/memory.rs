//! Rows F5 and F6: whatever the real or reported size of a file, a build takes at most twice its limit in memory.
//!
//! A test binary of its own with one test, because the peak is that of the whole process.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a site that cannot be laid out must stop the test")]

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::symlink;
use std::path::Path;

use proem::{Caller, Request};
use proem_core::limit::FILE_BYTES_MAX;
use serde_json::json;

/// The number of kilobytes behind a word in this process's status.
fn status(word: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(word)).unwrap();
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap()
}

/// Returns the bytes by which some work raises the peak memory of the process.
fn peak(work: impl FnOnce()) -> usize {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    work();
    status("VmHWM").saturating_sub(before) * 1024
}

type Put = fn(&Path);

const FILES: [(&str, Put); 5] = [
    ("10 GiB of nothing", |path| File::create(path).unwrap().set_len(10 << 30).unwrap()),
    ("64 MiB of text", |path| fs::write(path, vec![b'x'; 64 << 20]).unwrap()),
    ("one byte over", |path| fs::write(path, vec![b'x'; FILE_BYTES_MAX + 1]).unwrap()),
    ("a device that never ends", |path| symlink("/dev/zero", path).unwrap()),
    ("a file of the kernel that says it has no bytes", |path| symlink("/proc/kallsyms", path).unwrap()),
];

/// Row F6.
#[test]
fn a_file_takes_at_most_twice_its_limit() {
    for (name, put) in FILES {
        let folder = tempfile::tempdir().unwrap();
        put(&folder.path().join("odd"));
        let request = json!({"profile": "template", "cwd": folder.path(), "template": "<[file:odd]>"});
        let request = Request::from_json(&request.to_string()).unwrap();
        let build = || {
            let build = proem::build(&request, Caller::User).unwrap();
            assert_eq!(build.system(), Some("<>"), "{name}");
        };
        // Memory in use after the first build is code and reserves for the next.
        build();
        let most = peak(build);
        assert!(most <= 2 * FILE_BYTES_MAX, "{name}: {most} bytes");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    fs::write(&path, vec![b'x'; 64 << 20]).unwrap();
    let control = peak(|| drop(black_box(fs::read(&path).unwrap())));
    assert!(control >= 60 << 20, "control: reading all of it shows, {control} bytes");
}
