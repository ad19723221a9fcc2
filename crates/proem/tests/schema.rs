//! The published JSON schemas are those of the code. `PROEM_BLESS=1` writes them.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use proem::Request;
use proem::build_shape::BuildShape;
use proem::simulate::Simulation;
use proem::traffic::TrafficReport;
use proem::turn_shape::TurnShape;
use proem_testkit::project_root;
use schemars::Schema;

fn check(name: &str, schema: &Schema) {
    let path = project_root().join("docs/schema").join(name);
    let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("PROEM_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == text, "{} is not what the code says: run scripts/bless", path.display());
}

#[test]
fn request_schema_is_published() {
    check("request.json", &schemars::schema_for!(Request));
}

#[test]
fn build_schema_is_published() {
    check("build.json", &schemars::schema_for!(BuildShape<'static>));
}

#[test]
fn simulation_schema_is_published() {
    check("simulation.json", &schemars::schema_for!(Simulation));
}

#[test]
fn turn_schema_is_published() {
    check("turn.json", &schemars::schema_for!(TurnShape<'static>));
}

#[test]
fn report_schema_is_published() {
    check("report.json", &schemars::schema_for!(TrafficReport));
}
