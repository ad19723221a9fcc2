//! Keeps the structure of the crate: folders of at most 15 modules, files of at most 600 lines, imports between the
//! folders of `src` in the order of ARCHITECTURE.md, and one public type per name.
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
fn folders_import_in_the_order_of_the_architecture() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let page = fs::read_to_string(page).unwrap();
    let table = page.split("| folder | content |").nth(1).unwrap().split("\n\n").next().unwrap();
    let order: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let place = |room: &str| order.iter().position(|listed| *listed == room);
    let imports = imports();
    assert_eq!(
        imports.len(),
        order.len(),
        "ARCHITECTURE.md lists {order:?}, and there are {:?}",
        imports.keys()
    );
    for (room, wanted) in &imports {
        for other in wanted {
            assert!(
                place(other) < place(room),
                "`{room}` imports `{other}`, which ARCHITECTURE.md lists below it"
            );
        }
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

/// Returns the sources of all published crates.
fn published() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in ["proem", "proem-core", "proem-store", "proem-server", "proem-cli"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        sources(&folder, &mut files);
    }
    files
}

/// Returns the name of the public type that a line defines.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|letter: char| !letter.is_alphanumeric()).next()
}

#[test]
fn no_two_public_types_have_one_name() {
    let mut types: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in published() {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for name in text.lines().filter_map(public_type) {
            types.entry(name.to_owned()).or_default().push(file.clone());
        }
    }
    assert!(types.len() > 250, "{} types: the sources are not read as they are written", types.len());
    types.retain(|_, files| files.len() > 1);
    assert!(types.is_empty(), "these names have two public types; say what each one is: {types:#?}");
}

#[test]
fn no_file_is_too_long() {
    for file in published() {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines; at most {LINES_MAX}", file.display());
    }
}
