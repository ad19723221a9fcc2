//! Repositories that name objects of another repository, `other`, in order to reveal its content.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::Site;

/// A repository that leads to another one.
#[derive(Debug)]
pub struct Lead {
    /// The name of the case.
    pub name: &'static str,
    set: fn(&Site),
}

impl Lead {
    /// The content of the other repository that must stay hidden.
    pub const SECRET: &'static str = "secret-name";

    /// Sets the case up and checks that plain git reveals the content.
    #[must_use]
    pub fn lay_out(&self) -> Site {
        let site = Site::new();
        make_other(&site);
        (self.set)(&site);
        let shown = site.plain("tree", "git", ["status", "--short"].into_iter());
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(
            shown.contains(Self::SECRET),
            "{}: control: plain git shows it, and not {shown:?}",
            self.name
        );
        site
    }
}

fn make_other(site: &Site) {
    site.write(format!("other/{}", Lead::SECRET), "1\n");
    site.git("", "init -q -b secret-branch other");
    site.git("other", "add .");
    site.git("other", "commit -q -m secret");
}

const OBJECTS: &str = "tree/.git/objects";
const MAIN: &str = "tree/.git/refs/heads/main";

/// Points the branch at a commit of the other repository.
fn take_commit(site: &Site) {
    let id = site.git("other", "rev-parse HEAD");
    site.write(MAIN, &format!("{id}\n"));
}

fn take_objects(site: &Site) {
    site.write(format!("{OBJECTS}/info/alternates"), "{root}/other/.git/objects\n");
}

/// Replaces a path with a link.
fn lead(site: &Site, target: &str, path: &str) {
    let place = site.path(path);
    drop(fs::remove_file(&place));
    drop(fs::remove_dir_all(&place));
    symlink(site.path(target), site.place(path)).unwrap();
}

/// Returns the folders of loose objects of the other repository, by name.
fn loose(site: &Site) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(site.path("other/.git/objects")).unwrap();
    let named = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    named.filter(|(name, _)| name.len() == 2).collect()
}

/// All cases.
pub const LEADS: [Lead; 11] = [
    Lead {
        name: "alternates",
        set: |site| {
            take_objects(site);
            take_commit(site);
        },
    },
    Lead {
        name: "alternates that are relative",
        set: |site| {
            site.write(format!("{OBJECTS}/info/alternates"), "../../../other/.git/objects\n");
            take_commit(site);
        },
    },
    Lead {
        name: "alternates of alternates",
        set: |site| {
            site.git("", "init -q --bare between");
            site.write("between/objects/info/alternates", "{root}/other/.git/objects\n");
            site.write(format!("{OBJECTS}/info/alternates"), "{root}/between/objects\n");
            take_commit(site);
        },
    },
    Lead {
        name: "alternates that are a link",
        set: |site| {
            site.write("list", "{root}/other/.git/objects\n");
            lead(site, "list", &format!("{OBJECTS}/info/alternates"));
            take_commit(site);
        },
    },
    Lead {
        name: "a link for the branch",
        set: |site| {
            take_objects(site);
            lead(site, "other/.git/refs/heads/secret-branch", MAIN);
        },
    },
    Lead {
        name: "a link for all branches",
        set: |site| {
            take_objects(site);
            lead(site, "other/.git/refs/heads", "tree/.git/refs/heads");
            site.git("tree", "symbolic-ref HEAD refs/heads/secret-branch");
        },
    },
    Lead {
        name: "a link for the packs",
        set: |site| {
            site.git("other", "repack -q -a -d");
            lead(site, "other/.git/objects/pack", &format!("{OBJECTS}/pack"));
            take_commit(site);
        },
    },
    Lead {
        name: "links for each file of a pack",
        set: |site| {
            site.git("other", "repack -q -a -d");
            for entry in fs::read_dir(site.path("other/.git/objects/pack")).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                lead(site, &format!("other/.git/objects/pack/{name}"), &format!("{OBJECTS}/pack/{name}"));
            }
            take_commit(site);
        },
    },
    Lead {
        name: "links for folders of objects",
        set: |site| {
            for (name, _) in loose(site) {
                lead(site, &format!("other/.git/objects/{name}"), &format!("{OBJECTS}/{name}"));
            }
            take_commit(site);
        },
    },
    Lead {
        name: "links for each object",
        set: |site| {
            for (name, folder) in loose(site) {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = format!("{name}/{}", entry.unwrap().file_name().into_string().unwrap());
                    lead(site, &format!("other/.git/objects/{path}"), &format!("{OBJECTS}/{path}"));
                }
            }
            take_commit(site);
        },
    },
    Lead { name: "a link for the whole", set: |site| lead(site, "other/.git", "tree/.git") },
];
