//! Repositories that name a program.

use std::fs;
use std::os::unix::fs::symlink;

use super::{Control, DIFF, IN_TREE, NO_REPOSITORY, Site, Trap, UNSTAGED};

/// Traps in the configuration.
pub const CONFIGURATION: [Trap; 7] = [
    Trap {
        name: "fsmonitor",
        set: |site| drop(site.git("tree", "config core.fsmonitor {program}")),
        ..IN_TREE
    },
    Trap {
        name: "fsmonitor in an included file",
        set: |site| {
            site.write("included", "[core]\n\tfsmonitor = {program}\n");
            site.git("tree", "config include.path {root}/included");
        },
        ..IN_TREE
    },
    Trap {
        name: "fsmonitor in a file included on a branch",
        set: |site| {
            site.write("included", "[core]\n\tfsmonitor = {program}\n");
            site.git("tree", "config includeIf.onbranch:main.path {root}/included");
        },
        ..IN_TREE
    },
    Trap {
        name: "fsmonitor beside a harmless setting on the line of the section",
        set: |site| site.write("tree/.git/config", "[core] fsmonitor = {program}\n\tfilemode = true\n"),
        ..IN_TREE
    },
    Trap {
        name: "fsmonitor in config.worktree",
        set: |site| {
            site.git("tree", "config extensions.worktreeConfig true");
            site.git("tree", "config --worktree core.fsmonitor {program}");
        },
        ..IN_TREE
    },
    Trap {
        name: "core.pager",
        set: |site| drop(site.git("tree", "config core.pager {program}")),
        control: Control::GitOnTerminal("tree", "diff"),
        ..IN_TREE
    },
    Trap {
        name: "pager.status",
        set: |site| drop(site.git("tree", "config pager.status {program}")),
        control: Control::GitOnTerminal("tree", "status --short"),
        ..IN_TREE
    },
];

/// Traps for the content of files.
pub const ATTRIBUTES: [Trap; 7] = [
    Trap {
        name: "clean filter by .gitattributes",
        set: |site| {
            site.script("program", "cat");
            site.write("tree/.gitattributes", "* filter=x\n");
            site.git("tree", "config filter.x.clean {program}");
        },
        expected: ["main", " M a\nA  b\n?? .gitattributes\n?? new", DIFF],
        ..IN_TREE
    },
    Trap {
        name: "clean filter by info/attributes",
        set: |site| {
            site.script("program", "cat");
            site.write("tree/.git/info/attributes", "* filter=x\n");
            site.git("tree", "config filter.x.clean {program}");
        },
        ..IN_TREE
    },
    Trap {
        name: "clean filter by core.attributesFile",
        set: |site| {
            site.script("program", "cat");
            site.write("attributes", "* filter=x\n");
            site.git("tree", "config core.attributesFile {root}/attributes");
            site.git("tree", "config filter.x.clean {program}");
        },
        ..IN_TREE
    },
    Trap {
        name: "filter process",
        set: |site| {
            site.write("tree/.git/info/attributes", "* filter=x\n");
            site.git("tree", "config filter.x.process {program}");
        },
        ..IN_TREE
    },
    Trap {
        name: "external diff",
        set: |site| drop(site.git("tree", "config diff.external {program}")),
        control: Control::Git("tree", "diff"),
        ..IN_TREE
    },
    Trap {
        name: "external diff by attributes",
        set: |site| {
            site.write("tree/.git/info/attributes", "* diff=x\n");
            site.git("tree", "config diff.x.command {program}");
        },
        control: Control::Git("tree", "diff"),
        ..IN_TREE
    },
    Trap {
        name: "textconv",
        set: |site| {
            site.write("tree/.git/info/attributes", "* diff=x\n");
            site.git("tree", "config diff.x.textconv {program}");
        },
        control: Control::Git("tree", "diff"),
        ..IN_TREE
    },
];

/// Traps with hooks.
pub const HOOKS: [Trap; 2] = [
    Trap {
        name: "hooks/post-index-change",
        set: |site| site.script("tree/.git/hooks/post-index-change", ""),
        ..IN_TREE
    },
    Trap {
        name: "core.hooksPath",
        set: |site| {
            site.script("hooks/post-index-change", "");
            site.git("tree", "config core.hooksPath {root}/hooks");
        },
        ..IN_TREE
    },
];

/// Makes a partial clone of the tree without its blobs.
fn clone_without_blobs(site: &Site) {
    site.git("tree", "config uploadpack.allowFilter true");
    site.git("", "clone -q --no-checkout --filter=blob:none file://{root}/tree clone");
    site.git("clone", "read-tree HEAD");
    site.write("clone/a", "changed\n");
    site.write("clone/kept", "kept\n");
}

const IN_CLONE: Trap = Trap {
    control: Control::Git("clone", "diff --stat"),
    cwd: "clone",
    expected: ["main", " M a", ""],
    absent: "\ngit_failed: `[git:diff]` is absent: git failed: ",
    ..IN_TREE
};

/// Traps that fetch a missing object.
pub const REMOTES: [Trap; 3] = [
    Trap {
        name: "lazy fetch with uploadpack",
        set: |site| {
            clone_without_blobs(site);
            site.git("clone", "config remote.origin.uploadpack {program}");
        },
        ..IN_CLONE
    },
    Trap {
        name: "lazy fetch with core.sshCommand",
        set: |site| {
            clone_without_blobs(site);
            site.git("clone", "config remote.origin.url ssh://host.invalid/path");
            site.git("clone", "config core.sshCommand {program}");
        },
        ..IN_CLONE
    },
    Trap {
        name: "lazy fetch with the ext transport",
        set: |site| {
            clone_without_blobs(site);
            site.git("clone", "config remote.origin.url ext::{program}");
            site.git("clone", "config protocol.ext.allow always");
        },
        ..IN_CLONE
    },
];

/// Adds a committed submodule `sub` with a changed file.
pub fn add_submodule(site: &Site) {
    site.git("", "clone -q tree library");
    site.git("tree", "-c protocol.file.allow=always submodule --quiet add {root}/library sub");
    site.git("tree", "commit -q -m sub .gitmodules sub");
    site.write("tree/sub/a", "changed\n");
}

/// Commits a repository `sub` like a submodule, without an entry in `.gitmodules`.
pub fn embed_repository(site: &Site) {
    site.git("", "clone -q tree tree/sub");
    site.git("tree", "add sub");
    site.git("tree", "commit -q -m sub sub");
}

/// Adds a signed commit to the submodule.
fn sign_submodule(site: &Site) {
    let who = "A <a@example.org> 1767225600 +0000";
    let signature = "-----BEGIN PGP SIGNATURE-----\n \n eA==\n -----END PGP SIGNATURE-----";
    let tree = site.git("tree/sub", "write-tree");
    let commit = format!("tree {tree}\nauthor {who}\ncommitter {who}\ngpgsig {signature}\n\nsigned\n");
    site.write("signed", &commit);
    let id = site.git("tree/sub", "hash-object -t commit -w {root}/signed");
    site.git("tree/sub", &format!("reset -q --soft {id}"));
}

/// The configuration of a bare repository that claims to be a working tree.
const POSSESSED: &str =
    "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = {program}\n";

/// Traps with a repository inside the tree.
pub const NESTED: [Trap; 6] = [
    Trap {
        name: "bare repository inside the tree",
        set: |site| {
            site.git("tree", "init -q --bare bare");
            site.write("tree/bare/config", POSSESSED);
        },
        control: Control::Git("tree/bare", "status --short"),
        cwd: "tree/bare",
        expected: ["main", " M ../a\nA  ../b\n?? ./\n?? ../new", DIFF],
        ..IN_TREE
    },
    Trap {
        name: "bare repository outside of any tree",
        set: |site| {
            site.git("", "init -q --bare bare");
            site.write("bare/config", POSSESSED);
        },
        control: Control::Git("bare", "status --short"),
        cwd: "bare",
        expected: ["", "", ""],
        absent: NO_REPOSITORY,
    },
    Trap {
        name: "fsmonitor of a submodule",
        set: |site| {
            add_submodule(site);
            site.git("tree/sub", "config core.fsmonitor {program}");
        },
        ..IN_TREE
    },
    Trap {
        name: "fsmonitor of an embedded repository",
        set: |site| {
            embed_repository(site);
            site.git("tree/sub", "config core.fsmonitor {program}");
        },
        ..IN_TREE
    },
    Trap {
        name: "clean filter of a submodule",
        set: |site| {
            site.script("program", "cat");
            add_submodule(site);
            site.write("attributes", "* filter=x\n");
            site.git("tree/sub", "config core.attributesFile {root}/attributes");
            site.git("tree/sub", "config filter.x.clean {program}");
        },
        ..IN_TREE
    },
    Trap {
        name: "gpg.program by the summary of a submodule",
        set: |site| {
            add_submodule(site);
            sign_submodule(site);
            site.git("tree", "config status.submoduleSummary true");
            site.git("tree/sub", "config log.showSignature true");
            site.git("tree/sub", "config gpg.program {program}");
        },
        control: Control::Git("tree", "status"),
        ..IN_TREE
    },
];

/// Moves the `.git` directory out of the tree and leaves a `.git` file.
fn move_git_folder(site: &Site) {
    site.git("tree", "init -q --separate-git-dir={root}/elsewhere");
    site.git("tree", "config core.fsmonitor {program}");
}

/// Moves a part of the repository out of the tree and leaves a link.
pub fn link_away(site: &Site, name: &str) {
    let (inside, outside) = (site.path("tree/.git").join(name), site.place(format!("away/{name}")));
    fs::rename(&inside, &outside).unwrap();
    symlink(outside, inside).unwrap();
}

/// Makes a linked working tree `side` with a changed file.
pub fn add_side(site: &Site) {
    site.git("tree", "worktree add -q -b side {root}/side");
    site.write("side/a", "changed\n");
}

const IN_SIDE: Trap = Trap {
    control: Control::Git("side", "status --short"),
    cwd: "side",
    expected: ["side", " M a", UNSTAGED],
    ..IN_TREE
};

/// Traps in a repository that is stored elsewhere.
pub const ELSEWHERE: [Trap; 6] = [
    Trap { name: ".git file", set: move_git_folder, ..IN_TREE },
    Trap {
        name: ".git file that is relative",
        set: |site| {
            move_git_folder(site);
            site.write("tree/.git", "gitdir: ../elsewhere\n");
        },
        ..IN_TREE
    },
    Trap {
        name: ".git link",
        set: |site| {
            move_git_folder(site);
            fs::remove_file(site.path("tree/.git")).unwrap();
            symlink(site.path("elsewhere"), site.path("tree/.git")).unwrap();
        },
        ..IN_TREE
    },
    Trap {
        name: "commondir",
        set: |site| {
            move_git_folder(site);
            for name in ["HEAD", "index"] {
                fs::copy(site.path("elsewhere").join(name), site.place("own/x").with_file_name(name))
                    .unwrap();
            }
            site.write("own/commondir", "{root}/elsewhere\n");
            site.write("tree/.git", "gitdir: {root}/own\n");
        },
        ..IN_TREE
    },
    Trap {
        name: "linked working tree",
        set: |site| {
            add_side(site);
            site.git("tree", "config core.fsmonitor {program}");
        },
        ..IN_SIDE
    },
    Trap {
        name: "config.worktree of a linked working tree",
        set: |site| {
            add_side(site);
            site.git("tree", "config extensions.worktreeConfig true");
            site.git("side", "config --worktree core.fsmonitor {program}");
        },
        ..IN_SIDE
    },
];
