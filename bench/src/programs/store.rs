//! P12 and P13: what it takes to get a stored prompt.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use proem::Engine;
use proem_bench::fixture::stores::{PREFIXES, PROMPT_BYTES, Prompts, StoreFile, id};
use proem_bench::{Options, Race};
use proem_store::{Conversations, SqliteStore, Store};
use proem_testkit::PostgresServer;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The number of conversations that are looked up repeatedly.
const HOT: usize = 1_000;
/// Lookups of one candidate.
const CALLS: usize = 2_000;

pub(crate) fn run(options: &Options) {
    let sizes = options.sizes(&[1_000, 10_000, 100_000, 1_000_000], 1_000);
    let epochs = Prompts::new(&options.path("store"), PREFIXES);
    if options.wants("P12") {
        for count in sizes {
            let place = StoreFile::filled(&epochs, count);
            sqlite(options, &epochs, &place, count);
        }
    }
    if options.wants("P13") {
        for count in options.sizes(&[100, 1_000, 10_000], 100) {
            postgres(options, &epochs, count);
        }
    }
}

/// Numbers in an order that no cache guesses.
fn shuffled(count: usize) -> impl FnMut() -> usize {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % (count as u64)).unwrap_or_default()
    }
}

fn sqlite(options: &Options, prompts: &Prompts, place: &StoreFile, count: usize) {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&place.path).expect("it can be opened"));
    from_memory(options, prompts, &store, count);
    from_disk(prompts, &store, count);
}

/// A thousand conversations in no order, all of them used before. The floor looks shared texts up in a map.
fn from_memory(options: &Options, prompts: &Prompts, store: &Arc<dyn Store>, count: usize) {
    let conversations = Conversations::new(Arc::clone(store), Engine::new());
    let known: HashMap<String, Arc<str>> =
        (0..count.min(100_000)).map(|number| (id(number), prompts.text(number).into())).collect();
    let names: Vec<String> = (0..HOT).map(id).collect();
    let current = |name: &String| conversations.current(name).expect("it can be read").expect("it is there");
    for name in &names {
        drop(current(name));
    }
    let (mut a, mut b) = (shuffled(HOT), shuffled(HOT));
    Race::new("P12", format!("{}, from memory", people(count)))
        .grows("get from memory", count)
        .enter("floor", || known.get(&names[a()]).map(Arc::clone))
        .enter("proem", || current(&names[b()]))
        .run_short(options);
}

/// Conversations in no order, each asked for once. The floor reads 16 KB from a file.
fn from_disk(prompts: &Prompts, store: &Arc<dyn Store>, count: usize) {
    let folder = tempfile::tempdir().expect("there is room");
    let slots = count.min(10_000);
    let plain = plain_file(folder.path(), prompts, slots);
    let (mut a, mut b, mut c) = (shuffled(slots), shuffled(count), shuffled(count));
    let mut buffer = vec![0; PROMPT_BYTES];
    let conversations = Conversations::new(Arc::clone(store), Engine::new());
    Race::new("P12", format!("{}, from SQLite", people(count)))
        .grows("get from SQLite", count)
        .enter("floor", || plain.read_exact_at(&mut buffer, (a() * PROMPT_BYTES) as u64))
        .enter("proem", || store.current(&id(b())).expect("it can be read").expect("it is there"))
        .enter("proem, ready to answer", || conversations.epoch(&id(c()), 1).expect("it can be read"))
        .run_each(CALLS);
}

fn plain_file(folder: &Path, prompts: &Prompts, slots: usize) -> File {
    let path = folder.join("plain");
    let texts: Vec<u8> = (0..slots)
        .flat_map(|number| prompts.text(number).bytes().chain([b' '].repeat(99)).take(PROMPT_BYTES))
        .collect();
    fs::write(&path, texts).expect("it can be written");
    File::open(path).expect("it is there")
}

fn people(count: usize) -> String {
    let digits = count.to_string();
    let grouped =
        digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect::<Vec<_>>().join(",");
    format!("{grouped} conversations")
}

/// P13: PostgreSQL on this machine. The floor is one prepared statement that returns the text.
fn postgres(options: &Options, prompts: &Prompts, count: usize) {
    let _one_core = OneCore::new();
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("bench");
    let store: Arc<dyn Store> = Arc::from(proem_store::open(&url).expect("it can be opened"));
    let mut client = postgres::Client::connect(&url, postgres::NoTls).expect("it can be reached");
    client
        .batch_execute("CREATE TABLE bench_prompt (id TEXT PRIMARY KEY, text TEXT)")
        .expect("it can be made");
    for number in 0..count {
        store.open(&prompts.epoch(number)).expect("it can be stored");
        let row =
            client.execute("INSERT INTO bench_prompt VALUES ($1, $2)", &[&id(number), &prompts.text(number)]);
        row.expect("it can be stored");
    }
    client.batch_execute("ANALYZE").expect("it can be analysed");
    let select = client.prepare("SELECT text FROM bench_prompt WHERE id = $1").expect("it is SQL");
    let (mut a, mut b) = (shuffled(count), shuffled(count));
    Race::new("P13", format!("{}, from PostgreSQL", people(count)))
        .grows("get from PostgreSQL", count)
        .enter("floor", || client.query_one(&select, &[&id(a())]).expect("it is there").get::<_, String>(0))
        .enter("proem", || store.current(&id(b())).expect("it can be read").expect("it is there"))
        .run_each(if options.is_short { 200 } else { CALLS });
}

/// Keeps this thread and its children on one core. On two, waking the other core takes as long as the whole query, and the
/// kernel decides per connection whether that happens.
struct OneCore {
    before: CpuSet,
}

impl OneCore {
    fn new() -> Self {
        let before = sched_getaffinity(None).expect("the system says where this may run");
        let core = (0..CpuSet::MAX_CPU).rev().find(|core| before.is_set(*core)).expect("it runs somewhere");
        let mut one = CpuSet::new();
        one.set(core);
        sched_setaffinity(None, &one).expect("a thread may stay where it may run");
        Self { before }
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        sched_setaffinity(None, &self.before).expect("it ran there before");
    }
}
