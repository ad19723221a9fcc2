//! Lays out what programs in other languages are measured on, too. `proem-bench fixtures --data DIR [--short] [ROW...]`.

use std::collections::BTreeMap;
use std::fs;

use proem_bench::Options;
use proem_bench::fixture::stores::{PREFIXES, Prompts, fill};
use proem_bench::fixture::templates::{BRACKET, JINJA, SIZES, template, value};
use proem_bench::fixture::trees::{SKILLS, levels, skills};
use proem_bench::fixture::{PROSE, prose, write};

/// More prompts of their own than the server keeps in memory.
const DISTINCT: usize = 6_000;

pub(crate) fn run(options: &Options) {
    fs::create_dir_all(&options.data).expect("the folder can be made");
    if ["P1", "P2"].iter().any(|row| options.wants(row)) {
        templates(options);
    }
    trees(options);
    if options.wants("P16") {
        for bytes in options.sizes(&PROSE, 64_000) {
            write(&options.path(format!("prose/{bytes}")), &prose(bytes));
        }
    }
    if options.wants("P15") {
        stores(options);
    }
}

fn templates(options: &Options) {
    let values: Vec<String> = (0..8).map(value).collect();
    write(&options.path("templates/values.json"), &serde_json::json!(values).to_string());
    let named: BTreeMap<String, String> = (0..8).map(|key| (format!("k{key}"), value(key))).collect();
    let context = minijinja::Value::from(named);
    for bytes in options.sizes(&SIZES, 200 << 10) {
        let name = options.path(format!("templates/{bytes}"));
        let jinja = template(&JINJA, bytes);
        let expected = minijinja::Environment::new().render_str(&jinja, &context);
        write(&name.with_extension("bracket"), &template(&BRACKET, bytes));
        write(&name.with_extension("expected"), &(expected.expect("it renders") + "\n"));
        write(&name.with_extension("jinja"), &jinja);
    }
}

fn trees(options: &Options) {
    if options.wants("P6") || options.wants("P15") {
        for count in options.sizes(&SKILLS, 100) {
            skills(&options.path(format!("skills-{count}")), count);
        }
    }
    if options.wants("P5") {
        skills(&options.path("start"), 50);
        levels(&options.path("start"));
    }
    if options.wants("P11") {
        for count in options.sizes(&[50, 500, 5_000], 500) {
            let root = options.path(format!("build-{count}"));
            skills(&root, count);
            levels(&root);
        }
    }
}

fn stores(options: &Options) {
    let root = options.path("serve");
    write(&root.join("home/.keep"), "");
    fill(&root.join("distinct.db"), &Prompts::new(&root, DISTINCT), DISTINCT);
    let shared = Prompts::new(&root, PREFIXES);
    for count in options.sizes(&[1_000, 10_000, 100_000], 1_000) {
        fill(&root.join(format!("shared-{count}.db")), &shared, count);
    }
}
