//! Jinja templates against bare minijinja, on generated input: guards and tracing change no byte.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::collections::BTreeMap;

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use proem::build_shape::BuildShape;
use proem::{Caller, Request};
use proptest::prelude::*;
use serde_json::json;

const PIECES: [&str; 84] = [
    "text",
    " ",
    "\n",
    "\r\n",
    "é🦀",
    "{",
    "}}",
    "[a:b]",
    "{{ cwd }}",
    "{{ language }}",
    "{{- language -}}",
    "{{ language | upper }}",
    "{{ language ~ '-' ~ cwd }}",
    "{{ ('a' ~ language) ~ (1 + 2) }}",
    "{{ 1 + 2 * (3 + 4) }}",
    "{{ [1] + [2] }}",
    "{{ language[0:1] ~ cwd[:1][0:] }}",
    "{{ (language ~ 'x')[1:][0:1] ~ [1, 2, 3][1:] }}",
    "{{ ((language))[::-1]|upper }}",
    "{{ {'k': [language]}.k[0][0:1] }}{{ (language|upper)[1:] }}{{ language|upper|list|join('')[0:1] }}",
    "{{ range(5)[1:3]|list ~ tools[0:1][0] ~ (tools)[1:]|join }}",
    "{{ 1 + 2 ~ 3 }}",
    "{{ 1 ~ 2 + 3 }}",
    "{{ ((1 + 2)) + (3) ~ ((4)) }}",
    "{{ (('a')) ~ ('b') * 2 ~ 'c' }}",
    "{{ 2 * 'ab' ~ 3 * (1 + 2) * 2 }}",
    "{{ 'a' ~ ('b' ~ ('c' ~ 'd')|upper)|length ~ -1 + 2 }}",
    "{{ {'k': 'a' ~ 'b'}['k' ~ ''] ~ [1 + 1, 2 * 2][0 + 1] }}",
    "{{ ('a' ~ 'b' if 1 + 1 == 2 else 'c' ~ 'd') ~ (language ~ '!')[0:1 + 1] }}",
    "{{ tools | join(', ') }}",
    "{{ language | replace('e', 'ee') }}",
    "{{ 'a\nb' | indent(2) }}",
    "{% if tools %}",
    "{% if not tools %}",
    "{%- if language == 'de' -%}",
    "{% else %}",
    "{% endif %}",
    "{% for t in tools %}",
    "{% for t in tools %}{{ t }}{{ loop.index + 1 }}{% endfor %}",
    "{% endfor %}",
    "{% set x = language ~ '!' %}",
    "{{ x }}",
    "{% set y %}<{{ language }}>{% endset %}{{ y }}",
    "{% macro m(a) %}({{ a ~ a }}){% endmacro %}{{ m(language) }}",
    "{% filter upper %}{{ language }} f{% endfilter %}",
    "{# comment #}",
    "{% raw %}{{ raw }}{% endraw %}",
    "{{ '' }}",
    "{{ ghost }}",
    "{{ 'a' == language }}{{ language != 'de' }}{{ 1 < 2 }}{{ [1] <= [2] }}{{ 1 < 2 < 3 }}{{ 3 > 2 >= 2 != 5 }}",
    "{{ 'e' in language }}{{ 'x' not in language }}{{ not 'x' in language }}{{ (1) in(1, 2) }}{{ ('a')in[language,'a'] }}",
    "{{ ((language ~ 'x') == ('dex')) == (1 == 1) }}{{ language|upper == 'DE' and not (tools != ['a', 'b']) }}",
    "{{ 1==1 }}{{ -1==0-1 }}{{ [1]+[2]==[1,2] }}{{ 'a'~'b'*2 }}{{ tools[0]=='a'in[true,false] }}",
    "{{ 'de' == language if tools == ['a', 'b'] else 1 in tools }}",
    "{{ [language, [language, cwd]] }}{{ (language, cwd) }}{{ (language,) }}{{ () }}{{ {'k': language, 'l': [cwd]} }}",
    "{% set p = language, cwd %}{{ p }}{% set q=language,(cwd) %}{{ q }}{% set q, r = (language), cwd %}{{ q ~ r }}",
    "{{ {language: 1}[language] }}{{ tools[1 - 1] }}{{ tools[-1] }}{{ language[0] }}{{ tools.0 }}{{ (language).1 }}{{ {'a': {'b': 2}}.a.b }}",
    "{{ {'k': 1}['k'] }}{{ ([[1, 2], [3]])[0][1] }}{{ tools[:1][0] }}{{ range(9)[2:8][1] }}",
    "{{ tools[::-1] }}{{ tools[::-1]|list }}{{ (tools * 2)[1:] }}{{ (tools + tools) }}{{ tools[1:]|pprint }}{{ tools[5:] }}",
    "{{ tools[1:] is sequence }}{{ tools[1:] is iterable }}{{ (tools + [1])|length }}{{ (tools * 0) }}{{ not tools[9:] }}",
    "{{ range(3)|list }}{{ range(3) }}{{ range(3)|reverse }}{{ tools|reverse|first }}{{ tools|last }}{{ (1, 2)[1:] }}",
    "{{ language is eq 'de' }}{{ 1 is lt 2 }}{{ 'a' is in tools }}{{ language is lower }}{{ language is sameas language }}",
    "{{ language is startingwith('d') }}{{ 4 is divisibleby 2 }}{{ ghost is defined }}{{ ghost is undefined }}{{ 1 is not eq(2) }}",
    "{{ tools|select('eq', 'a')|list }}{{ tools|reject('in', ['a']) }}{{ [3, 1, 2]|sort }}{{ ['b', 'A', 'a']|unique }}{{ [1, 3]|max }}",
    "{{ [{'n': 'x', 'v': 1}, {'n': 'y', 'v': 1}]|groupby('v') }}{{ [{'n': 'x'}]|map(attribute='n')|join('-') }}",
    "{% for g in [{'n': 'x', 'v': 1}, {'n': 'y', 'v': 2}]|groupby('v') %}{{ g.grouper }}{{ g.list|map(attribute='n')|join }}{% endfor %}",
    "{{ [{'n': 'y'}, {'n': 'x'}]|sort(attribute='n') }}{{ [{'n': 2}]|selectattr('n', 'gt', 1)|list }}{{ [1, 2]|sum }}{{ [[1], [2]]|sum(start=[]) }}",
    "{{ {'b': 1, 'a': 2}|items|list }}{{ {'b': 1, 'a': 2}|dictsort }}{{ {'b': 1}|chain({'a': 2}) }}{{ {'b': 1}|chain({'b': 2, 'c': 3})|items }}",
    "{{ tools|zip([1, 2])|list }}{{ tools|zip([1]) }}{{ tools|chain([1])|list }}{{ tools|chain([1])|length }}{{ tools|chain(range(2)) }}{{ tools|batch(2, 'x') }}{{ tools|slice(2) }}",
    "{{ ghost|default('x') }}{{ ''|default('y', true) }}{{ ghost|d(language) }}{{ [1, 2]|attr(0) }}{{ tools|first }}{{ language|length }}{{ tools|count }}",
    "{{ dict(a=language, b=tools) }}{{ dict({'x': 1}, y=language).y }}{{ dict(**{'a': tools}) }}",
    "{% set ns = namespace(a=1) %}{% set ns.b = [ns.a, language] %}{% set ns.a=language,cwd %}{{ ns.b }}{{ ns.a }}{{ ns }}",
    "{% set ns = namespace() %}{% set ns.x, y = [1, 2] %}{{ ns.x ~ y }}{% set ns.z %}block{% endset %}{{ ns.z == 'block' }}",
    "{% for t in tools %}{{ loop.cycle('odd', 'even') }}{{ loop.changed(t, x=[t]) }}{{ loop.changed(*tools) }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% macro n(a, b=[language, language]) %}{{ a == b }}{{ b }}{% endmacro %}{{ n(*[1]) }}{{ n(b=2, a=(1 + 1)) }}{{ n(*tools[0:1], **{'b': tools * 2}) }}",
    "{% macro c() %}{{ caller(language ~ 'x') }}{% endmacro %}{% call(v, w=language == 'de') c() %}{{ v }}{{ w }}{% endcall %}",
    "{% for t in tools if t != 'a' %}{{ t in 'abc' }}{% endfor %}{% for a, b in [(1, 2), (3, 4)] %}{{ a < b }}{% endfor %}",
    "{% if tools and 'a' in tools and (1, 2) == (1, 2) %}yes{% elif language > 'd' %}no{% endif %}",
    "{{ 'a,b'|split(',') }}{{ 'a b'|title|trim('A') }}{{ '%s-%s'|format(language, 1) }}{{ '3'|int + 1 }}{{ tools|string }}{{ 2.5|round }}{{ tools|bool }}{{ -1|abs }}",
    "{{ tools|map('upper')|list }}{{ tools|map('replace', 'a', 'x')|join }}{{ '<'|e }}{{ '<'|escape|safe }}",
    "{% autoescape true %}{{ '<' ~ language }}{{ ['<'] == ['<'] }}{{ ('<'|safe)[0:1] }}{% endautoescape %}",
    "{% for c in language %}{{ c }}{{ loop.length }}{% else %}e{% endfor %}{% for t in(tools if tools else [])if t %}{{ t }}{% endfor %}",
    "{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is sequence else x }}{% endfor %}{% for x in range(2) if x recursive %}{{ x }}{% endfor %}",
    "{% with a = [language, cwd], b = tools[0] == 'a' %}{{ a[0] in a }}{{ b }}{% endwith %}{% do dict(a=tools == [1]) %}",
];

fn template() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..12).prop_map(|pieces| pieces.concat())
}

/// Renders a template with bare minijinja, with the settings that the assets profile promises.
fn bare(source: &str) -> Option<String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(1_000_000));
    environment.add_template("t", source).ok()?;
    let context: BTreeMap<&str, Value> = BTreeMap::from([
        ("cwd", Value::from("/")),
        ("language", Value::from("de")),
        ("tools", Value::from(vec!["a", "b"])),
    ]);
    environment.get_template("t").ok()?.render(Value::from(context)).ok()
}

/// Renders a template with proem; returns the text and the JSON about it.
fn ours(source: &str) -> Option<(String, serde_json::Value)> {
    let request = json!({
        "profile": "assets", "cwd": "/", "template": source, "language": "de", "residents": false, "project": false,
        "tools": [{"name": "b"}, {"name": "a"}],
        "host": {"env": {}, "home": null, "config_dir": null, "now": "2026-03-07T14:55:05Z"},
    });
    let build = proem::build(&Request::from_json(&request.to_string()).unwrap(), Caller::User).ok()?;
    let shape = serde_json::to_value(BuildShape::new(&build)).unwrap();
    Some((build.system().unwrap_or_default().to_owned(), shape))
}

/// Returns the prompt of a body, by the rules of the trailing section.
fn with_trailing_section(body: &str) -> String {
    let fresh = if body.ends_with('\n') { "" } else { "\n" };
    format!("{body}{fresh}\n---\n## Working boundaries\n\nReadable:\n  - /\nWritable:\n  - /")
}

/// Renders each piece alone, so that none of them occurs only in templates that fail.
#[test]
fn every_piece_alone_gives_what_bare_minijinja_gives() {
    let mut successes = 0;
    for piece in PIECES {
        let expected = bare(piece).map(|body| with_trailing_section(&body));
        successes += usize::from(expected.is_some());
        assert_eq!(ours(piece).map(|(text, _)| text), expected, "{piece}");
    }
    assert!(successes > PIECES.len() / 2, "only {successes} pieces render");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_and_failures_are_those_of_bare_minijinja(source in template()) {
        let expected = bare(&source).map(|body| with_trailing_section(&body));
        prop_assert_eq!(ours(&source).map(|(text, _)| text), expected, "{:?}", source);
    }

    #[test]
    fn every_byte_of_the_body_has_a_place(source in template()) {
        let Some((text, shape)) = ours(&source) else { return Ok(()) };
        let mut next = 0;
        for span in shape["spans"].as_array().unwrap() {
            prop_assert_eq!(&span["start"], &json!(next));
            next = span["end"].as_u64().unwrap();
            let from = if span["template"].is_null() { &span["source"] } else { &span["template"] };
            let is_of_filter_block = source.contains("{% filter") || source.contains("{% call");
            let has_place = from["line"].is_u64() || from["kind"] == "profile" || is_of_filter_block;
            prop_assert!(has_place, "{source:?}: {span}");
        }
        prop_assert_eq!(next, text.len() as u64);
    }
}
