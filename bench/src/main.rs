//! `proem-bench PROGRAM ...`: measures one group of rows and prints what it found, a JSON object a line.

mod programs;

use proem_bench::Options;
use programs::{bare_axum, discover, doctor, fixtures, git, guard, store, templates, tokens, traffic};

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        "bare-axum" => bare_axum::run().expect("it serves until it is ended"),
        "discover" => discover::run(&Options::of_process()),
        "doctor" => doctor::run(&Options::of_process()),
        "fixtures" => fixtures::run(&Options::of_process()),
        "git" => git::run(&Options::of_process()),
        "guard" => guard::run(),
        "store" => store::run(&Options::of_process()),
        "templates" => templates::run(&Options::of_process()),
        "tokens" => tokens::run(&Options::of_process()),
        "traffic" => traffic::run(&Options::of_process()),
        _ => panic!("there is no program `{name}`"),
    }
}
