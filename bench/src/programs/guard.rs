//! Repeats one small task, for a program that counts instructions. `proem-bench guard` names the works;
//! `proem-bench guard WORK TIMES` does one.

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::Arc;

use proem::build_shape::BuildShape;
use proem::check::check;
use proem::compare::{Snapshot, compare};
use proem::deliver::{DeliverOptions, Provider, deliver};
use proem::models::Models;
use proem::tokens::Tokenizer;
use proem::{Build, Caller, Engine, Request, build};
use proem_bench::fixture::stores::{Prompts, StoreFile, id};
use proem_bench::fixture::templates::{BRACKET, JINJA, jinja_request, template, value};
use proem_bench::fixture::trees::{deep, levels, skills};
use proem_bench::fixture::{prose, request, request_with, write};
use proem_core::bracket::{self, Policies, Template};
use proem_core::digest::Digest;
use proem_core::fact::{Fact, Facts};
use proem_core::front_matter;
use proem_core::stability::Stability;
use proem_store::{Conversations, MemoryStore, SqliteStore, Store};
use serde_json::json;

/// Sets something up in a folder, and returns what is counted.
type SetUp = fn(&Path) -> Box<dyn FnMut()>;

const WORKS: &[(&str, SetUp)] = &[
    ("parse", parse),
    ("render", render),
    ("front_matter", front),
    ("jinja", jinja),
    ("skills", scan),
    ("build", whole),
    ("check", lints),
    ("diff", diff),
    ("explain", explain),
    ("print", print),
    ("deliver", payload),
    ("digest", digest),
    ("tokens", tokens),
    ("turn", turn),
    ("sqlite", sqlite),
];

pub(crate) fn run() {
    let mut words = std::env::args().skip(2);
    let Some(name) = words.next() else {
        for (name, _) in WORKS {
            println!("{name}");
        }
        return;
    };
    let times: usize = words.next().and_then(|word| word.parse().ok()).expect("say how many times");
    // Always as long a path: its length is part of what is counted.
    let folder = tempfile::Builder::new().prefix("proem-guard-").tempdir_in("/tmp").expect("there is room");
    let (_, set_up) = WORKS.iter().find(|(known, _)| *known == name).expect("there is such a work");
    let mut work = set_up(folder.path());
    work();
    (0..times).for_each(|_| work());
}

fn boxed<T>(mut work: impl FnMut() -> T + 'static) -> Box<dyn FnMut()> {
    Box::new(move || drop(black_box(work())))
}

fn parse(_: &Path) -> Box<dyn FnMut()> {
    let source = template(&BRACKET, 8 << 10);
    boxed(move || Template::parse(black_box(&source)).wanted().len())
}

fn render(_: &Path) -> Box<dyn FnMut()> {
    let source: &'static str = template(&BRACKET, 8 << 10).leak();
    let parsed: &'static Template<'static> = Box::leak(Box::new(Template::parse(source)));
    let mut facts = Facts::new();
    for key in 0..8 {
        facts.insert(&format!("k:{key}"), Fact::given(value(key), Stability::Session));
    }
    boxed(move || {
        let bound = bracket::bind(parsed, &facts, &Policies::SEED).expect("nothing is refused");
        bracket::render(parsed, &bound)
    })
}

fn front(_: &Path) -> Box<dyn FnMut()> {
    let text = "---\nname: deploy\ndescription: Deploys; use it when asked.\nlicense: MIT\n---\nThe body.\n";
    boxed(move || match front_matter::split(black_box(text)) {
        front_matter::Split::Found { yaml, .. } => front_matter::parse(yaml).is_ok(),
        _ => unreachable!("it has front matter"),
    })
}

fn jinja(root: &Path) -> Box<dyn FnMut()> {
    builds(jinja_request(root, &template(&JINJA, 8 << 10)))
}

fn builds(request: Request) -> Box<dyn FnMut()> {
    boxed(move || build(&request, Caller::User).expect("it builds"))
}

fn tree(root: &Path) -> Request {
    skills(root, 10);
    levels(root);
    request("layers", &deep(root), root)
}

fn scan(root: &Path) -> Box<dyn FnMut()> {
    let request = tree(root);
    boxed(move || proem::skills(&request, Caller::User).expect("skills are found"))
}

fn whole(root: &Path) -> Box<dyn FnMut()> {
    builds(tree(root))
}

fn lints(root: &Path) -> Box<dyn FnMut()> {
    let request = tree(root);
    boxed(move || check(&request, Caller::User).expect("it can be checked"))
}

fn built(root: &Path) -> (Request, Build) {
    let request = tree(root);
    let build = build(&request, Caller::User).expect("it builds");
    (request, build)
}

fn diff(root: &Path) -> Box<dyn FnMut()> {
    let (request, before) = built(root);
    write(&deep(root).join("AGENTS.md"), "Something else.\n");
    let after = build(&request, Caller::User).expect("it builds");
    let snapshot = |build: &Build| Snapshot::new("one", build.frozen(), &request, None);
    let (a, b) = (snapshot(&before), snapshot(&after));
    boxed(move || compare(&a, &b, Tokenizer::Estimate))
}

fn explain(root: &Path) -> Box<dyn FnMut()> {
    let (_, build) = built(root);
    boxed(move || serde_json::to_vec(&BuildShape::new(&build)).expect("it is JSON"))
}

/// As `proem explain --format json` prints it.
fn print(root: &Path) -> Box<dyn FnMut()> {
    let (_, build) = built(root);
    boxed(move || serde_json::to_writer_pretty(io::sink(), &BuildShape::new(&build)).expect("it is JSON"))
}

fn payload(root: &Path) -> Box<dyn FnMut()> {
    let (request, build) = built(root);
    let request = Request { prompt: Some("Hello".into()), model: Some("claude-opus-5".into()), ..request };
    let models = Models::built_in().expect("they are well-formed");
    boxed(move || {
        deliver(Provider::Anthropic, &build, &request, &models, &DeliverOptions::default())
            .expect("it is taken")
    })
}

fn digest(_: &Path) -> Box<dyn FnMut()> {
    let text = prose(16 << 10);
    boxed(move || Digest::new(black_box(text.as_bytes())))
}

fn tokens(_: &Path) -> Box<dyn FnMut()> {
    let text = prose(6_400);
    boxed(move || Tokenizer::named("o200k_base").count(black_box(&text)))
}

/// A later turn of a conversation that is in memory.
fn turn(root: &Path) -> Box<dyn FnMut()> {
    write(&root.join("home/.keep"), "");
    let conversations = Conversations::new(Arc::new(MemoryStore::new()), Engine::new());
    let first =
        request_with("template", root, root, &json!({ "template": prose(16 << 10).replace('[', "(") }));
    let later = Request::default();
    conversations.turn("c", &first, Caller::User).expect("it builds");
    boxed(move || conversations.turn("c", &later, Caller::User).expect("it is known"))
}

fn sqlite(root: &Path) -> Box<dyn FnMut()> {
    let file = StoreFile::filled(&Prompts::new(root, 2), 50);
    let store = SqliteStore::open(&file.path).expect("it can be opened");
    boxed(move || {
        black_box(&file);
        store.current(&id(7)).expect("it can be read")
    })
}
