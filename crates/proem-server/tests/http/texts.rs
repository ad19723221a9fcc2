//! Hostile texts of a workspace over HTTP: binary files, confusable names, secrets, template syntax, endless templates and
//! invalid front matter. Rows C5, C7, C9, M1, M3 and M5 to M10.

use serde_json::json;

use crate::client::{Answer, Call};
use crate::server::{Server, Site};

fn preview(server: &Server, site: &Site, mut body: serde_json::Value) -> Answer {
    body["cwd"] = json!(site.path("work"));
    server.ask(&Call::json("POST", "/preview", &body))
}

fn built(server: &Server, site: &Site, profile: &str) -> Answer {
    let answer = preview(server, site, json!({"profile": profile}));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

/// Row C5.
#[test]
fn a_mark_at_the_beginning_goes_and_a_file_with_a_nul_is_absent() {
    let site = Site::new();
    site.write("work/AGENTS.md", "\u{FEFF}first\n");
    let server = site.serve();
    let marked = built(&server, &site, "default").system();
    assert!(marked.contains("first\n") && !marked.contains('\u{FEFF}'), "{marked}");
    site.write("work/AGENTS.md", "a\0b\n");
    let answer = built(&server, &site, "default");
    assert!(!answer.system().contains("a\0b") && answer.body.contains("not_utf8"), "{answer:?}");
    assert!(built(&server, &site, "layers").system().contains("a\0b"), "control: the seed takes it");
}

/// Row C7.
#[test]
fn a_name_that_is_nearly_right_is_told_and_not_loaded() {
    let site = Site::new();
    site.write("work/\u{410}GENTS.md", "from a stranger\n");
    let server = site.serve();
    let answer = built(&server, &site, "default");
    assert!(!answer.system().contains("from a stranger"), "{answer:?}");
    assert!(answer.body.contains("GENTS.md"), "it is named: {answer:?}");
    site.write("work/AGENTS.md", "from a friend\n");
    assert!(built(&server, &site, "default").system().contains("from a friend"), "control");
}

/// Row C9: the operator's policy on secrets is tested with the library and the command line.
#[test]
fn a_secret_in_a_file_is_told_with_a_mask() {
    const SECRET: &str = "ghp_x7Kd93mQpL2vRt8WzYb4NcHf6JsAe1GuTo5X";
    let site = Site::new();
    site.write("work/AGENTS.md", &format!("Use {SECRET} for releases.\n"));
    let answer = built(&site.serve(), &site, "default");
    assert!(answer.system().contains(SECRET), "control: reported, not changed");
    let notes = answer.json()["notes"].to_string();
    assert!(notes.contains("ghp_…") && !notes.contains(SECRET), "{notes}");
}

/// Row M1.
#[test]
fn what_a_file_says_is_not_looked_at_again() {
    const TEXT: &str = "[prompt:cwd] {{ cwd }} {% if true %}[if a:b]x[endif]";
    let site = Site::new();
    site.write("work/notes.md", TEXT);
    let server = site.serve();
    for template in ["<[file:notes.md]>", "<{{ file('notes.md') }}>"] {
        let profile = if template.contains('{') { "assets" } else { "template" };
        let answer = preview(&server, &site, json!({"profile": profile, "template": template}));
        assert!(answer.system().contains(&format!("<{TEXT}>")), "{template}: {answer:?}");
    }
    let control = preview(&server, &site, json!({"profile": "template", "template": "[prompt:cwd]"}));
    assert!(control.system().contains(&site.text("work")), "control: {control:?}");
}

/// Rows M3 and M5.
#[test]
fn a_template_that_would_not_end_is_an_error() {
    let site = Site::new();
    site.write("work/.proem/prompts/a.md", "{% include 'b' %}");
    site.write("work/.proem/prompts/b.md", "{% include 'a' %}");
    let server = site.serve();
    let assets = |template: &str| preview(&server, &site, json!({"profile": "assets", "template": template}));
    for (template, status, why) in [
        ("{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}", 422, "too long"),
        ("{% set x = 'x' * 1000000 %}{% for i in range(100) %}{{ x * 1000 }}{% endfor %}", 422, "too large"),
        ("{% include '$workspace/a' %}", 422, "in a circle"),
    ] {
        let answer = assets(template);
        assert!(answer.status == status && answer.body.contains(why), "{template}: {answer:?}");
        assert!(server.is_well());
    }
    assert_eq!(assets("{% for i in range(10) %}{{ i }}{% endfor %}").status, 200, "control");
}

/// Rows M7 to M10: broken skills are named in notes and left out, and the others are listed.
#[test]
fn a_skill_whose_front_matter_is_none_is_told_and_left_out() {
    let deep = "[".repeat(2000) + &"]".repeat(2000);
    let bomb = (1..9).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1)).collect::<Vec<_>>().concat();
    for (row, yaml) in [
        ("M7", format!("description: {}\n", "x".repeat(9 << 10))),
        ("M7", format!("description: x\nmetadata: {deep}\n")),
        ("M8", "description: !!python/object x\n".to_owned()),
        ("M8", "description: x\ndescription: y\n".to_owned()),
        ("M10", format!("a0: &a0 [x, x]\n{bomb}description: *a8\n")),
    ] {
        let site = Site::new();
        site.write("work/.agents/skills/broken/SKILL.md", &format!("---\nname: broken\n{yaml}---\n"));
        site.write("work/.agents/skills/whole/SKILL.md", "---\nname: whole\ndescription: yes, 007\n---\n");
        let answer = built(&site.serve(), &site, "layers");
        let system = answer.system();
        assert!(system.contains("yes, 007"), "{row}, control and M9: {answer:?}");
        assert!(!system.contains("<name>broken"), "{row}: {answer:?}");
        assert!(answer.body.contains("malformed_skill"), "{row}: {answer:?}");
    }
}

/// Row M6.
#[test]
fn patterns_that_explode_elsewhere_are_read_in_no_time() {
    let site = Site::new();
    for name in ["kept", "hidden"] {
        let text = format!("---\nname: {name}\ndescription: the {name} one\n---\n");
        site.write(&format!("work/.sf/skills/{name}/SKILL.md"), &text);
    }
    let server = site.serve();
    assert!(built(&server, &site, "layers").system().contains("the hidden one"), "control");
    let bomb = ["*a".repeat(8000), "{a,b}".repeat(2000), "**/x/".repeat(1000)].join("\n");
    site.write("work/.sf/skills/.ignore", &format!("hidden/\n{bomb}\n"));
    let listed = built(&server, &site, "layers").system();
    assert!(listed.contains("the kept one") && !listed.contains("the hidden one"), "{listed}");
}
