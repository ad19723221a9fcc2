//! Templates that need too many resources: each ends within its budget, and similar harmless templates are unaffected.

use crate::observe::deadline::{self, tests::with_work};
use crate::{Caller, Error, Request};

/// A budget that a hostile template uses up soon, and a harmless one never does.
const WORK: u64 = 1 << 20;

/// Nanoseconds of CPU time that one unit of work may take here, without optimisation: several times the usual value. A
/// template whose work is not charged takes far more, up to the limit of CPU time.
const NANOS_PER_UNIT: u64 = 1_000;

fn build(template: &str) -> Result<String, Error> {
    let request = serde_json::json!({
        "profile": "assets", "cwd": "/", "template": template, "residents": false, "project": false,
        "tools": (0..1000).map(|index| serde_json::json!({"name": format!("tool-{index:04}")})).collect::<Vec<_>>(),
        "host": {"env": {}, "home": null, "config_dir": null, "now": "2026-03-07T14:55:05Z"},
    });
    let request = Request::from_json(&request.to_string())?;
    crate::build(&request, Caller::User).map(|build| build.system().unwrap_or_default().to_owned())
}

/// Doubles `a` and `b` by an expression in which they are called `x`, and then uses them in `end`.
fn doubling(expression: &str, end: &str) -> String {
    let twice = |name: &str| format!("{{% set {name} = {} %}}", expression.replace('x', name)).repeat(60);
    format!("{{% set a = [1] %}}{{% set b = [1] %}}{}{}{end}", twice("a"), twice("b"))
}

/// Repeats `body`, with two long lists `l` and `m`, a long text `t` and a range `r`.
fn again(body: &str) -> String {
    format!(
        "{{% set l = range(20000)|list %}}{{% set m = range(20000)|list %}}{{% set t = 'ab' * 400000 %}}\
         {{% set r = range(99999) %}}{{% for i in range(9000) %}}{body}{{% endfor %}}"
    )
}

#[expect(clippy::too_many_lines, reason = "a table of templates")]
fn hostile() -> Vec<String> {
    let doublings = [
        "[x, x]",
        "(x, x)",
        "x, x",
        "x,(x)",
        "{'k': x, 'l': x}",
        "{1: [x], 2: [x]}",
        "dict(k=x, l=x)",
        "namespace(k=x, l=x)",
        "[x]|chain([x])|list",
        "[x]|zip([x])|list",
        "[x, x]|batch(1)|list",
        "[x]|batch(2, x)",
        "[x]|slice(2, x)",
        "[[], []]|map('default', x, true)|list",
        "[{}, {}]|map(attribute='k', default=x)|list",
        "[1, 2]|groupby('k', default=x)",
        "[x, x]|unique|list + [x]",
        "{'k': x}|chain({'l': x})",
        "{'k': x, 'l': x}|items|list",
        "{'k': x, 'l': x}|dictsort",
        "[x, x]|sort",
        "[x, x][::-1]",
        "[x] * 2",
        "[x] + [x]",
        "[x, x] if true else x",
    ];
    let mut templates: Vec<String> = doublings.iter().map(|own| doubling(own, "{{ a == b }}")).collect();
    for end in [
        "{{ a < b }}",
        "{{ a != b }}",
        "{{ 1 < a < b }}",
        "{{ a in [b] }}",
        "{{ a not in [b] }}",
        "{{ a is eq b }}",
        "{{ [a, b]|max }}",
        "{{ [b]|select('eq', a)|list }}",
        "{{ {a: 1}[b] }}",
        "{{ a|string|length }}",
        "{{ a }}",
        "{{ [a, b]|unique|length }}",
        "{% for i in [1] %}{{ loop.changed(a) }}{{ loop.changed(b) }}{% endfor %}",
    ] {
        templates.push(doubling("[x, x]", end));
    }
    for body in [
        "{% if l == m %}{% endif %}",
        "{% if l != m %}{% endif %}",
        "{% if l <= m %}{% endif %}",
        "{% if 1 in [] or l < m < l %}{% endif %}",
        "{% if -1 in r %}{% endif %}",
        "{% if -1 not in l %}{% endif %}",
        "{% if 'ba' * 3000 in t %}{% endif %}",
        "{% if l is eq m %}{% endif %}",
        "{% if l is lt(m) %}{% endif %}",
        "{% if -1 is in r %}{% endif %}",
        "{% if t is lower %}{% endif %}",
        "{% if t is upper %}{% endif %}",
        "{% if t is startingwith(t) %}{% endif %}",
        "{% if t is endingwith(t) %}{% endif %}",
        "{% if t is sameas(t) %}{% endif %}",
        "{% if t < t ~ 'x' %}{% endif %}",
        "{% set x = l|max %}",
        "{% set x = l|min %}",
        "{% set x = l|sort %}",
        "{% set x = l|unique %}",
        "{% set x = l|reverse %}",
        "{% set x = l|list %}",
        "{% set x = l|sum %}",
        "{% set x = l|join %}",
        "{% set x = l|select('eq', 1) %}",
        "{% set x = l|reject('odd') %}",
        "{% set x = l|map('abs') %}",
        "{% set x = l|batch(3) %}",
        "{% set x = l|slice(3) %}",
        "{% set x = l|zip(m) %}",
        "{% set x = l|chain(m) %}",
        "{% set x = l|string %}",
        "{% set x = l|pprint %}",
        "{% set x = t|length %}",
        "{% set x = t|upper %}",
        "{% set x = t|title %}",
        "{% set x = t|split('a') %}",
        "{% set x = t|replace('c', 'd') %}",
        "{% set x = t|trim('ab') %}",
        "{% set x = t|int(1) %}",
        "{% set x = t|e %}",
        "{% set x = t|safe %}",
        "{% set x = t[799999] %}",
        "{% set x = t.799999 %}",
        "{% set x = t[-1] %}",
        "{% set x = t[::-1] %}",
        "{% set x = l[1:] %}",
        "{% set x = l[::-1] %}",
        "{% set x = r[99998] %}",
        "{% set x = r|last %}",
        "{% set x = l + m %}",
        "{% set x = l * 2 %}",
        "{% set x = t ~ t %}",
        "{% set x = [l] %}",
        "{% set x = (l, 1) %}",
        "{% set x = {'k': l} %}",
        "{% set x = {l: 1} %}",
        "{% set x = {1: 2}[t] is defined %}",
        "{% set x = dict(k=l) %}",
        "{% set x = namespace(k=l) %}",
        "{% set x = loop.changed(l, m) %}",
        "{% set x = loop.changed(k=l) %}",
        "{% set x = loop.cycle(*l) %}",
        "{% set x = loop.cycle(*r) %}",
        "{% set x = [t]|map(attribute='0.0.0.0.0.0.0.0' * 4000)|list %}",
        "{% set x = tools|sort(attribute='0.0' * 2000) %}",
        "{% set x = tools|list %}{% set x = tools|length + tools|length + tools|length %}",
        "{% set x %}{{ r }}{% endset %}",
        "{% for c in t %}{% break %}{% endfor %}",
        "{% include r|map('string')|list ignore missing %}",
        "{% set x = '%(k)s%(k)s'|format(k=t) %}",
    ] {
        templates.push(again(body));
    }
    for step in [
        "x[1:]",
        "x[::1]",
        "x|reverse",
        "x * 1",
        "x + []",
        "x|chain([])",
        "[x]",
        "{'k': x}",
        "(x,)",
        "x|zip(x)",
    ] {
        templates.push(format!("{{% set ns = namespace(x=[1, 2, 3] * 1000) %}}{{% for i in range(9000) %}}{{% set ns.x = {} %}}{{% endfor %}}", step.replace('x', "ns.x")));
    }
    templates.extend([
        "{% set ns = namespace(x={}) %}{% for i in range(9000) %}{% set ns.x = ns.x|chain({i: tools}) %}{% endfor %}".into(),
        "{% set h = namespace(x=1) %}{% for i in range(9000) %}{% set n = namespace() %}{% set n.x = h.x %}{% set h.x = n %}{% endfor %}".into(),
        "{% set n = namespace() %}{% set n.x = [{'k': n}] %}".into(),
        "{% set n = namespace() %}{% set m = namespace(n=n) %}{% set n.x, m.x = [1, m] %}{% set m.n.x = m %}".into(),
        format!("{{% if false %}}{}{{% endif %}}", (0..300).map(|n| format!("{{% block b{n} %}}{{% endblock %}}")).collect::<Vec<_>>().concat()),
        (0..5000).map(|n| format!("{{% set n{n} = 1 %}}")).collect::<Vec<_>>().concat(),
        "{% for i in [1] %}{{ loop.cycle() }}{% endfor %}".into(),
        "{% set m = {}|chain(dict(a=tools, b=1)) %}{% for i in range(9000) %}{% set m = m|chain({}) %}{% if m == {'k': m} %}{% endif %}{% endfor %}".into(),
        "{{ ''|indent(1000000000000000) }}".into(),
        "{{ 1 is divisibleby(0) }}".into(),
        "{% include 'a' * 99999999 ~ 'a' * 99999999 %}".into(),
        "{% extends 'a' * 99999999 %}".into(),
        "{{ tools['a' * 99999999] }}".into(),
        "{{ ['x']|map('__proem_at', 1)|list }}".into(),
        "{% for i in range(9000) %}{{ env['X' ~ i] }}{% endfor %}".into(),
    ]);
    templates
}

#[test]
fn hostile_templates_end_with_an_error_within_their_budget() {
    let mut spent = Vec::new();
    for template in hostile() {
        let before = deadline::thread_cpu();
        let error = with_work(WORK, || build(&template)).expect_err(&template).to_string();
        let nanos = deadline::thread_cpu() - before;
        let is_clear = [
            "too large",
            "too long",
            "itself",
            "divisible",
            "own",
            "no reference",
            "not defined",
            "stopped",
            "too much for one",
            "panics",
        ]
        .iter()
        .any(|words| error.contains(words));
        assert!(is_clear, "{template}: {error}");
        assert!(error.contains("request field `template`"), "{template}: {error}");
        assert!(nanos < WORK * NANOS_PER_UNIT, "{template}: {} ms, {error}", nanos / 1_000_000);
        spent.push((nanos / 1_000_000, template));
    }
    assert!(spent.len() > 100, "{}", spent.len());
}

/// The same shapes in the sizes of usual templates.
#[test]
fn harmless_templates_render_within_the_same_budget() {
    for (template, expected) in [
        ("{{ tools|sort|join(',') == tools|join(',') }}", "True"),
        ("{% for t in tools %}{% if t in tools %}{% endif %}{% endfor %}{{ tools|length }}", "1000"),
        (
            "{% set ns = namespace(n=0) %}{% for t in tools %}{% if t != 'tool-0001' %}{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}{{ ns.n }}",
            "999",
        ),
        (
            "{% set ns = namespace(l=[]) %}{% for t in tools[:300] %}{% set ns.l = ns.l + [t] %}{% endfor %}{{ ns.l|length }}",
            "300",
        ),
        ("{{ tools|map('upper')|select('ne', 'TOOL-0000')|list|length }}", "999"),
        (
            "{{ tools|batch(10)|list|length }}{{ tools|unique|list|length }}{{ tools|max }}{{ tools[::-1]|first }}",
            "1001000tool-0999tool-0999",
        ),
        (
            "{% set a = [1] %}{% for i in range(10) %}{% set a = [a, a] %}{% endfor %}{{ a == [[1], [1]] }}",
            "False",
        ),
        (
            "{% set a = {'k': tools} %}{{ a == {'k': tools} }}{{ 'tool-0500' in a.k }}{{ a['k'][5] }}",
            "TrueTruetool-0005",
        ),
        ("{% for i in range(20000) %}{% if i == 19999 %}{{ i }}{% endif %}{% endfor %}", "19999"),
        ("{{ ('x' * 900000)|length }}{{ ('x' * 900000)|upper|length }}", "900000900000"),
    ] {
        let system = with_work(WORK * 8, || build(template)).expect(template);
        let body = system.split("\n\n---\n").next().unwrap_or_default();
        assert_eq!(body, expected, "{template}");
    }
}

/// Compiling has no steps to count, so the number of slow parts of a template is limited.
#[test]
fn a_template_has_a_limit_of_costly_expressions() {
    let chain = |operators: usize| format!("{{{{ 1{} }}}}", "+1".repeat(operators));
    let refused = build(&chain(490).repeat(1050)).expect_err("it has half a million operators").to_string();
    assert!(refused.contains("operators and other costly expressions"), "{refused}");
    assert!(build(&chain(490).repeat(20)).is_ok());
}

/// Comments and raw blocks leave pieces of text that follow each other without a tag: they are not words of a tag.
#[test]
fn text_between_comments_is_in_no_tag() {
    assert!(build(&"{# c #} word\n".repeat(1_001)).is_ok());
    assert!(build(&"{% raw %}{{ x }}{% endraw %} words\n".repeat(600)).is_ok());
}
