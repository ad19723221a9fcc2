//! Metrics about provider caches.

use serde_json::json;

use crate::client::Call;
use crate::server::Site;

/// Returns the lines of a metric.
fn lines(text: &str, name: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
}

#[test]
fn epochs_calls_and_the_version_are_counted() {
    let site = Site::new();
    let server = site.serve();
    let done = |call: &Call| {
        let answer = server.ask(call);
        assert!((200..300).contains(&answer.status), "{}", answer.body);
    };
    let turn = |template: &str| Call::json("POST", "/conversations/c/turn", &json!({ "template": template }));
    done(&turn("T"));
    done(&turn("T"));
    done(&Call::new("POST", "/conversations/c/compaction?commit=true"));
    for profile in ["engraving", "boundary"] {
        done(&Call::json("PUT", "/conversations/c/profile", &json!({ "profile": profile })));
    }
    let call = |read: u64| {
        let usage = json!({ "input_tokens": 9, "cache_read_input_tokens": read, "cache_creation_input_tokens": 5000 });
        json!({ "response": { "model": "claude-opus-5", "usage": usage } })
    };
    done(&Call::json("POST", "/conversations/c/calls", &call(0)));
    done(&Call::json("POST", "/conversations/c/calls", &call(0)));
    let text = server.ask(&Call::get("/metrics")).body;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(lines(&text, "proem_build_info"), [format!("proem_build_info{{version=\"{version}\"}} 1")]);
    assert_eq!(
        lines(&text, "proem_epochs_total"),
        [
            "proem_epochs_total{reason=\"startup\"} 1",
            "proem_epochs_total{reason=\"compaction\"} 1",
            "proem_epochs_total{reason=\"tools\"} 0",
            "proem_epochs_total{reason=\"cwd\"} 0",
            "proem_epochs_total{reason=\"reload\"} 0",
            "proem_epochs_total{reason=\"resources\"} 0",
            "proem_epochs_total{reason=\"skills_reload\"} 0",
            "proem_epochs_total{reason=\"profile_switch\"} 2",
        ]
    );
    let counted = lines(&text, "proem_calls_total").into_iter().filter(|line| !line.ends_with(" 0"));
    assert_eq!(
        counted.collect::<Vec<_>>(),
        [r#"proem_calls_total{verdict="cold_start"} 1"#, r#"proem_calls_total{verdict="unknown"} 1"#]
    );
    assert_eq!(lines(&text, "proem_lost_usd_total").len(), 5);
}
