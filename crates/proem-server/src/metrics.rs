//! Metrics of the server, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use proem::traffic::CacheVerdict;
use proem::traffic::call::OwnerKind;
use proem::traffic::verdict::LossSide;

use crate::shapes::insight::LatencyShape;

/// Upper bounds of the histogram of request times, in microseconds.
const BOUNDS: [u64; 8] = [100, 500, 1_000, 5_000, 20_000, 100_000, 1_000_000, 10_000_000];

/// The counters of this process.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: [AtomicU64; 6],
    times: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
    pub(crate) turns_built: AtomicU64,
    pub(crate) turns_reused: AtomicU64,
    pub(crate) work_stopped: AtomicU64,
    /// Recorded calls, by verdict.
    verdicts: [AtomicU64; CacheVerdict::ALL.len()],
    /// Millionths of a dollar that misses cost, by side.
    lost: [AtomicU64; SIDES.len()],
}

/// The sides that losses are counted for.
const SIDES: [(&str, LossSide); 5] = [
    ("ours", LossSide::Ours),
    ("user", LossSide::User),
    ("agent", LossSide::Agent),
    ("provider", LossSide::Provider),
    ("unknown", LossSide::Unknown),
];

/// Reasons for new epochs. Each is printed from the start, with 0, so that Prometheus can compute rates.
const REASONS: [&str; 8] =
    ["startup", "compaction", "tools", "cwd", "reload", "resources", "skills_reload", "profile_switch"];

/// Numbers that other parts of the server count.
pub(crate) struct ExternalMetrics {
    pub(crate) work_running: usize,
    pub(crate) spans_dropped: u64,
    /// New epochs, by reason.
    pub(crate) epochs: BTreeMap<String, u64>,
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

    /// Counts a recorded call, and what it lost.
    pub(crate) fn judged(&self, verdict: CacheVerdict, owner: Option<OwnerKind>, lost_usd: Option<f64>) {
        let counters = CacheVerdict::ALL.iter().zip(&self.verdicts);
        let found = counters.into_iter().find(|(known, _)| **known == verdict);
        if let Some((_, count)) = found {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let side = LossSide::of(owner.unwrap_or(OwnerKind::Unknown));
        let lost = lost_usd.filter(|usd| usd.is_finite()).unwrap_or(0.0).max(0.0) * 1e6;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is positive, and saturates"
        )]
        let lost = lost.round() as u64;
        let found = SIDES.iter().zip(&self.lost).find(|((_, known), _)| *known == side);
        if let Some((_, sum)) = found {
            sum.fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// Returns the times of answered requests, and their number by class of status.
    pub(crate) fn latency(&self) -> (LatencyShape, BTreeMap<String, u64>) {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let counts: Vec<u64> = self.times.iter().map(read).collect();
        let count: u64 = counts.iter().sum();
        let millis = |micros: u64| std::time::Duration::from_micros(micros).as_secs_f64() * 1e3;
        let quantile = |share: u64| {
            let wanted = (count * share).div_ceil(100).max(1);
            let mut sum = 0;
            let index = counts.iter().position(|more| {
                sum += more;
                sum >= wanted
            })?;
            BOUNDS.get(index).map(|bound| millis(*bound))
        };
        let latency = LatencyShape {
            count,
            p50_ms: quantile(50),
            p95_ms: quantile(95),
            p99_ms: quantile(99),
            mean_ms: read(&self.micros).checked_div(count).map(millis),
        };
        let classes = self.requests.iter().enumerate().skip(1);
        (latency, classes.map(|(class, number)| (format!("{class}xx"), read(number))).collect())
    }

    /// Returns all metrics as text.
    pub(crate) fn text(&self, external: ExternalMetrics) -> String {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let ExternalMetrics { work_running, spans_dropped, epochs } = external;
        let mut text =
            String::from("# HELP proem_build_info The running version.\n# TYPE proem_build_info gauge\n");
        line(&mut text, &format!("proem_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")));
        text.push_str(
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
        self.push_epochs_and_calls(&mut text, &epochs);
        text.push_str(
            "# HELP proem_work_running Builds and reads in progress.\n# TYPE proem_work_running gauge\n",
        );
        line(&mut text, &format!("proem_work_running {work_running}"));
        text.push_str("# HELP proem_work_stopped_total Work that ended after its client disconnected.\n# TYPE proem_work_stopped_total counter\n");
        line(&mut text, &format!("proem_work_stopped_total {}", read(&self.work_stopped)));
        text.push_str("# HELP proem_spans_dropped_total Spans that were not delivered.\n# TYPE proem_spans_dropped_total counter\n");
        line(&mut text, &format!("proem_spans_dropped_total {spans_dropped}"));
        text
    }

    fn push_epochs_and_calls(&self, text: &mut String, opened: &BTreeMap<String, u64>) {
        // The name of a profile is not part of the label.
        let mut epochs: BTreeMap<&str, u64> = BTreeMap::new();
        for (reason, count) in opened {
            *epochs.entry(reason.split(':').next().unwrap_or(reason)).or_default() += count;
        }
        text.push_str(
            "# HELP proem_epochs_total New epochs of this process, by reason.\n# TYPE proem_epochs_total counter\n",
        );
        for reason in REASONS {
            let count = epochs.remove(reason).unwrap_or(0);
            line(text, &format!("proem_epochs_total{{reason=\"{reason}\"}} {count}"));
        }
        for (reason, count) in epochs {
            line(text, &format!("proem_epochs_total{{reason=\"{reason}\"}} {count}"));
        }
        text.push_str(
            "# HELP proem_calls_total Recorded calls, by verdict on their cache.\n# TYPE proem_calls_total counter\n",
        );
        for (verdict, count) in CacheVerdict::ALL.iter().zip(&self.verdicts) {
            let (verdict, count) = (verdict.word(), count.load(Ordering::Relaxed));
            line(text, &format!("proem_calls_total{{verdict=\"{verdict}\"}} {count}"));
        }
        text.push_str(
            "# HELP proem_lost_usd_total The price of tokens that were not read from the cache, by the side that caused it.\n\
             # TYPE proem_lost_usd_total counter\n",
        );
        for ((side, _), lost) in SIDES.iter().zip(&self.lost) {
            let micros = lost.load(Ordering::Relaxed);
            let (dollars, rest) = (micros / 1_000_000, micros % 1_000_000);
            line(text, &format!("proem_lost_usd_total{{side=\"{side}\"}} {dollars}.{rest:06}"));
        }
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}
