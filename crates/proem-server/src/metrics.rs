//! Numbers about the server, in the text that Prometheus reads.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds of the classes of time, in microseconds.
const BOUNDS: [u64; 8] = [100, 500, 1_000, 5_000, 20_000, 100_000, 1_000_000, 10_000_000];

/// What is counted.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: [AtomicU64; 6],
    times: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
    pub(crate) turns_built: AtomicU64,
    pub(crate) turns_reused: AtomicU64,
    pub(crate) work_stopped: AtomicU64,
}

impl Metrics {
    /// Counts an answered request.
    pub(crate) fn answered(&self, status: u16, micros: u64) {
        if let Some(class) = self.requests.get(usize::from(status / 100)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        let index = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        if let Some(class) = self.times.get(index) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// The text.
    pub(crate) fn text(&self, work_running: usize, spans_dropped: u64) -> String {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let mut text = String::from(
            "# HELP proem_requests_total Answered requests.\n# TYPE proem_requests_total counter\n",
        );
        for (class, count) in self.requests.iter().enumerate().skip(1) {
            line(&mut text, &format!("proem_requests_total{{status=\"{class}xx\"}} {}", read(count)));
        }
        text.push_str("# HELP proem_request_seconds Time of answered requests.\n# TYPE proem_request_seconds histogram\n");
        let mut sum = 0;
        for (bound, count) in BOUNDS.iter().zip(&self.times) {
            sum += read(count);
            let seconds = std::time::Duration::from_micros(*bound).as_secs_f64();
            line(&mut text, &format!("proem_request_seconds_bucket{{le=\"{seconds}\"}} {sum}"));
        }
        sum += self.times.last().map_or(0, read);
        line(&mut text, &format!("proem_request_seconds_bucket{{le=\"+Inf\"}} {sum}"));
        let seconds = std::time::Duration::from_micros(read(&self.micros)).as_secs_f64();
        line(&mut text, &format!("proem_request_seconds_sum {seconds}"));
        line(&mut text, &format!("proem_request_seconds_count {sum}"));
        text.push_str("# HELP proem_turns_total Turns of conversations.\n# TYPE proem_turns_total counter\n");
        line(&mut text, &format!("proem_turns_total{{prompt=\"built\"}} {}", read(&self.turns_built)));
        line(&mut text, &format!("proem_turns_total{{prompt=\"reused\"}} {}", read(&self.turns_reused)));
        text.push_str(
            "# HELP proem_work_running Requests that are worked on.\n# TYPE proem_work_running gauge\n",
        );
        line(&mut text, &format!("proem_work_running {work_running}"));
        text.push_str("# HELP proem_work_stopped_total Work that ended after its client had gone.\n# TYPE proem_work_stopped_total counter\n");
        line(&mut text, &format!("proem_work_stopped_total {}", read(&self.work_stopped)));
        text.push_str("# HELP proem_spans_dropped_total Spans that no collector got.\n# TYPE proem_spans_dropped_total counter\n");
        line(&mut text, &format!("proem_spans_dropped_total {spans_dropped}"));
        text
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}
