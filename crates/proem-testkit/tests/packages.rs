//! A published crate stands alone: it has the texts of its licences, and its README links to nothing outside of it.

use std::fs;

use proem_testkit::project_root;

#[test]
fn a_published_crate_has_its_licences_and_a_readme_without_links_out_of_it() {
    let root = project_root();
    let mut published = 0;
    for folder in fs::read_dir(root.join("crates")).unwrap() {
        let folder = folder.unwrap().path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if manifest.contains("publish = false") {
            continue;
        }
        published += 1;
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let (own, whole) = (fs::read(folder.join(name)), fs::read(root.join(name)).unwrap());
            assert_eq!(own.ok(), Some(whole), "{} of {}", name, folder.display());
        }
        assert!(manifest.contains("\nreadme = \"README.md\"\n"), "{}", folder.display());
        let page = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(!page.contains("](../"), "{}", folder.display());
    }
    assert!(published > 0, "no crate was looked at");
}

#[test]
fn the_package_for_npm_has_the_version_of_the_workspace() {
    let read = |path: &str| fs::read_to_string(project_root().join(path)).unwrap();
    let package: serde_json::Value = serde_json::from_str(&read("bindings/node/package.json")).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&read("bindings/node/package-lock.json")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!((package["version"].as_str(), lock["version"].as_str()), (Some(version), Some(version)));
}
