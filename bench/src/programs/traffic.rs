//! T4 and T5: the analysis of calls, against hashing what it reads.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use proem::models::Models;
use proem::traffic::collect::{ReadOptions, TrafficSource, read};
use proem::traffic::{Analyser, Call, ReportBuilder, ReportFilter};
use proem_bench::{Options, Race};
use proem_core::digest::Digest;
use serde_json::json;

pub(crate) fn run(options: &Options) {
    if options.wants("T4") {
        for bytes in options.sizes(&[100_000, 1_000_000], 100_000) {
            verdict(options, bytes);
        }
    }
    if options.wants("T5") {
        for bytes in options.sizes(&[64_000_000, 1_000_000_000], 64_000_000) {
            report(options, bytes);
        }
    }
}

/// A request of about `bytes` with blocks of 2 KB; the messages after `messages` are left out.
fn request(bytes: usize, time: usize, messages: usize) -> String {
    let text =
        |number: usize| format!("{number} {}", "A line of a file that the agent has read.\n".repeat(48));
    let list: Vec<_> = (0..(bytes / 2_048).min(messages))
        .map(|number| {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            json!({ "role": role, "content": [{ "type": "text", "text": text(number) }] })
        })
        .collect();
    let system = format!("You are an agent.\nTime: 10:00:{time:02}\n{}", text(0));
    json!({ "model": "claude-opus-5", "messages": list,
        "system": [{ "type": "text", "text": system, "cache_control": { "type": "ephemeral" } }] })
    .to_string()
}

fn call(id: usize, body: &Arc<str>) -> Call {
    let mut call = Call {
        id: id.to_string(),
        at: Some(1_794_900_000_000 + i64::try_from(id).expect("it is small") * 2_000),
        conversation: Some("c".into()),
        body: Some(Arc::clone(body)),
        ..Call::default()
    };
    (call.usage.read, call.usage.written, call.usage.uncached) = (Some(0), Some(250_000), Some(1));
    call
}

/// Chain and verdict of one request, with its predecessor known. The floor hashes the body once.
fn verdict(options: &Options, bytes: usize) {
    let bodies: [Arc<str>; 2] = [request(bytes, 1, usize::MAX).into(), request(bytes, 2, usize::MAX).into()];
    let mut analyser = Analyser::new(Models::built_in().expect("it is built in"));
    let mut count = 0;
    let race = Race::new("T4", format!("chain and verdict of a request of {} KB", bytes / 1_000))
        .grows("verdict", bytes)
        .enter("SHA-256 of the body", || Digest::new(bodies[0].as_bytes()))
        .enter("proem", || {
            count += 1;
            analyser.take(call(count, &bodies[count % 2])).lost_tokens
        });
    race.run_short(&options.at_most(50));
}

/// Lines of conversations of 20 calls that grow.
fn recordings(path: &Path, bytes: usize) {
    let mut file = BufWriter::new(File::create(path).expect("it can be created"));
    let (mut written, mut id) = (0, 0);
    while written < bytes {
        id += 1;
        let request = request(100_000, 1, 10 + id % 20 * 2);
        let line = format!(
            r#"{{"id":"{id}","at":{},"conversation":"c{}","request":{request},"response":{{"usage":{{"input_tokens":1,"cache_read_input_tokens":9000,"cache_creation_input_tokens":900}}}}}}"#,
            1_794_900_000 + id * 2,
            id / 20,
        );
        writeln!(file, "{line}").expect("there is room");
        written += line.len() + 1;
    }
    file.flush().expect("there is room");
}

/// A report over recordings. The floor reads the files and hashes them once.
fn report(options: &Options, bytes: usize) {
    let folder = options.path(format!("recordings-{bytes}"));
    std::fs::create_dir_all(&folder).expect("it can be created");
    let path = folder.join("calls.jsonl");
    recordings(&path, bytes);
    let models = Models::built_in().expect("it is built in");
    let hash = || {
        let (mut file, mut buffer, mut last) =
            (File::open(&path).expect("it is there"), vec![0; 1 << 20], None);
        loop {
            let count = file.read(&mut buffer).expect("it can be read");
            if count == 0 {
                return last;
            }
            last = Some(Digest::new(&buffer[..count]));
        }
    };
    let read_all = || {
        let mut builder = ReportBuilder::new(&models, ReportFilter::default());
        read(TrafficSource::Jsonl, &folder, &ReadOptions::default(), &mut |call| builder.take(call));
        let report = builder.finish();
        assert!(report.totals.calls > 100, "all calls are read");
        report.totals.calls
    };
    Race::new("T5", format!("report over {} MB of recordings", bytes / 1_000_000))
        .grows("report", bytes)
        .enter("reading and hashing", hash)
        .enter("proem", read_all)
        .run_long(&options.at_most(if bytes > 100_000_000 { 2 } else { 5 }));
    std::fs::remove_dir_all(&folder).expect("it was created here");
}
