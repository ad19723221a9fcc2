//! The published description of the API equals that of the code. `PROEM_BLESS=1` writes it.

use std::collections::BTreeSet;

use proem_testkit::project_root;
use serde_json::Value;

use crate::client::Call;
use crate::routes::ROUTES;
use crate::server::Site;

#[test]
fn description_is_published() {
    let path = project_root().join("docs/schema/openapi.json");
    let text = serde_json::to_string_pretty(&proem_server::document()).unwrap() + "\n";
    if std::env::var_os("PROEM_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == text, "{} is not what the code says: run scripts/bless", path.display());
}

#[test]
fn description_is_served() {
    let site = Site::new();
    assert_eq!(site.serve().ask(&Call::get("/openapi.json")).json(), proem_server::document());
}

#[test]
fn every_route_is_described_and_no_other() {
    let document = proem_server::document();
    let Value::Object(paths) = &document["paths"] else { unreachable!("paths are an object") };
    let mut described = BTreeSet::new();
    for (path, methods) in paths {
        for method in methods.as_object().unwrap().keys() {
            described.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let known = ROUTES
        .iter()
        .flat_map(|(path, methods)| methods.iter().map(move |method| format!("{method} {path}")));
    assert_eq!(described, known.collect());
}
