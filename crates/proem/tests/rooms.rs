//! Keeps the structure of the crate: folders of at most 15 modules, files of at most 600 lines, and no import cycle
//! between the folders of `src`.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const MODULES_MAX: usize = 15;
const LINES_MAX: usize = 600;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the sources of the crate without their tests and comments, by the folder or file below `src`.
fn code() -> BTreeMap<String, Vec<String>> {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let mut rooms: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let below = file.strip_prefix(root()).unwrap();
        if ["tests.rs", "hostile.rs", "properties.rs"].iter().any(|name| below.ends_with(name)) {
            continue;
        }
        let room = below.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        rooms.entry(room).or_default().push(lines.collect::<Vec<_>>().join("\n"));
    }
    rooms
}

/// Returns the rooms that each room imports from.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let rooms = code();
    let of_room = |(room, texts): (&String, &Vec<String>)| {
        let names = texts.iter().flat_map(|text| text.split("crate::").skip(1)).map(|rest| {
            let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_');
            rest.get(..end.unwrap_or(rest.len())).unwrap().to_owned()
        });
        let found = names.filter(|name| name != room && rooms.contains_key(name)).collect();
        (room.clone(), found)
    };
    rooms.iter().filter(|(room, _)| *room != "lib").map(of_room).collect()
}

#[test]
fn folders_import_each_other_in_one_direction() {
    let mut left = imports();
    assert!(left.len() > 10, "{left:?}");
    // Rooms without remaining imports are removed until none is left.
    while !left.is_empty() {
        let free: Vec<String> = left
            .iter()
            .filter(|(_, wanted)| wanted.iter().all(|name| !left.contains_key(name)))
            .map(|(room, _)| room.clone())
            .collect();
        let in_cycle =
            || left.iter().map(|(room, wanted)| format!("{room} -> {wanted:?}")).collect::<Vec<_>>();
        assert!(!free.is_empty(), "these import each other in a circle:\n{}", in_cycle().join("\n"));
        left.retain(|room, _| !free.contains(room));
    }
}

#[test]
fn no_folder_has_too_many_modules() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let mut modules: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        for path in file.ancestors().take_while(|path| *path != root()) {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if name != "mod" && name != "lib" {
                modules.entry(path.parent().unwrap().to_owned()).or_default().insert(name);
            }
        }
    }
    for (folder, names) in modules {
        assert!(names.len() <= MODULES_MAX, "{} has {}: {names:?}", folder.display(), names.len());
    }
}

#[test]
fn no_file_is_too_long() {
    let mut files = Vec::new();
    for name in ["proem", "proem-core", "proem-store", "proem-server", "proem-cli"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        sources(&folder, &mut files);
    }
    for file in files {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines; at most {LINES_MAX}", file.display());
    }
}
