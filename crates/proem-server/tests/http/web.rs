//! The editor in the binary was built from `web/`. The stamp of the build is compared, so Node is not needed.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::path::Path;

use proem_core::digest::Digest;
use proem_testkit::project_root;

/// The sources of the editor besides those in `src`.
const OWN: [&str; 5] = ["build.mjs", "index.html", "package-lock.json", "package.json", "tsconfig.json"];

fn below(folder: &Path, web: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, web, found);
        } else {
            found.push(path.strip_prefix(web).unwrap().to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn the_built_editor_is_that_of_the_sources() {
    let web = project_root().join("web");
    let mut paths: Vec<String> = OWN.map(str::to_owned).into();
    below(&web.join("src"), &web, &mut paths);
    paths.sort();
    let lines = paths.iter().map(|path| {
        let content = fs::read(web.join(path)).unwrap();
        format!("{path}\0{}\n", Digest::new(&content).hex())
    });
    let stamp = format!("{}\n", Digest::new(lines.collect::<String>().as_bytes()).hex());
    let built = fs::read_to_string(project_root().join("crates/proem-server/dist/stamp.txt")).unwrap();
    assert_eq!(built, stamp, "the editor is older than its sources: run `npm ci && npm run build` in web/");
}
