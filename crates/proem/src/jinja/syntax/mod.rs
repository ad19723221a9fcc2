//! Static facts about a Jinja template: its includes, and the values that each `{{ … }}` inserts.

pub(super) mod expression;
pub(super) mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::ErrorKind;
use minijinja::machinery::ast::{Expr, Stmt};
use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;
use proem_core::limit::{
    JINJA_BLOCKS_MAX, JINJA_BRANCHES_MAX, JINJA_EXPRESSIONS_MAX, JINJA_NAMES_MAX, JINJA_TAG_TOKENS_MAX,
};

use crate::jinja::cost::expensive::{CostlyExpressions, Wrap};
use crate::jinja::ending::Ending;
use crate::jinja::syntax::expression::{constant, expressions, names};
use crate::jinja::syntax::tokens::{Kind, Mark, tokens};

/// An include whose name is a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Include {
    pub(crate) name: String,
    pub(crate) offset: usize,
    pub(crate) ignores_missing: bool,
}

/// A `{{ … }}`: the range of its expression, and the names in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// The offset of `{{`.
    pub(crate) offset: usize,
    /// The range of the expression, white space included.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) names: BTreeSet<String>,
    /// The first expression of the template with the same names.
    pub(crate) alike: usize,
    /// True if it is a single name.
    pub(crate) is_bare: bool,
}

/// The static facts about a template.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outline {
    /// The expressions whose cost is checked.
    pub(crate) wraps: Vec<Wrap>,
    /// The bytes of the longest text between two tags.
    pub(crate) longest_text: usize,
    pub(crate) includes: Vec<Include>,
    pub(crate) sites: Vec<Site>,
    /// Names that the template sets, and the names in their values.
    pub(crate) assigned: BTreeMap<String, BTreeSet<String>>,
}

/// Checks a template's syntax and outlines it.
pub(crate) fn outline(text: &str, name: &str, syntax: &SyntaxConfig) -> Result<Outline, minijinja::Error> {
    // If the tokens are invalid, the parser reports it in better words.
    let tokens = tokens(text, syntax);
    if let Ok(tokens) = &tokens {
        check_depth(tokens)?;
        check_names(tokens).map_err(|message| minijinja::Error::new(ErrorKind::SyntaxError, message))?;
    }
    let tree = parse(text, name, syntax.clone())?;
    let tokens = tokens?;
    let costly = CostlyExpressions { text, tokens: &tokens, wraps: Vec::new() };
    let mut walk = Walk { outline: Outline::default(), emitted: Vec::new(), costly, blocks: 0 };
    walk.statement(&tree);
    check_names_and_blocks(&walk)?;
    let mut outline = walk.outline;
    outline.sites = sites(&tokens, walk.emitted);
    outline.wraps = walk.costly.wraps;
    outline.longest_text = tokens.iter().map(|token| token.text_bytes).max().unwrap_or(0);
    Ok(outline)
}

fn more_than(limit: usize, things: &str) -> Ending {
    Ending::LargeTemplate(format!("more than {limit} {things}"))
}

/// Refuses templates that would make minijinja's parser recurse too deeply: it has a limit of its own for brackets and
/// blocks, but not for long chains of operators, filters and branches.
fn check_depth(tokens: &[Mark]) -> Result<(), Ending> {
    let (mut in_tag, mut branches) = (0, 0);
    for token in tokens {
        match token.kind {
            Kind::VariableStart | Kind::BlockStart | Kind::VariableEnd | Kind::BlockEnd | Kind::Text => {
                in_tag = 0;
            }
            kind => {
                in_tag += 1;
                branches += usize::from(kind == Kind::Elif);
            }
        }
        if in_tag > JINJA_TAG_TOKENS_MAX {
            return Err(more_than(JINJA_TAG_TOKENS_MAX, "words and signs in one tag"));
        }
        if branches > JINJA_BRANCHES_MAX {
            return Err(more_than(JINJA_BRANCHES_MAX, "`elif` branches"));
        }
    }
    Ok(())
}

/// Refuses too many names and blocks, which every import or include of a template would copy.
fn check_names_and_blocks(walk: &Walk<'_>) -> Result<(), Ending> {
    if walk.outline.assigned.len() > JINJA_NAMES_MAX {
        return Err(more_than(JINJA_NAMES_MAX, "names that it sets"));
    }
    if walk.costly.wraps.len() > JINJA_EXPRESSIONS_MAX {
        return Err(more_than(JINJA_EXPRESSIONS_MAX, "operators and other costly expressions"));
    }
    if walk.blocks > JINJA_BLOCKS_MAX {
        return Err(more_than(JINJA_BLOCKS_MAX, "blocks"));
    }
    Ok(())
}

/// The prefix of filters and functions that are put around expressions: a template that calls them itself could fake
/// the origin of its text.
pub(crate) const RESERVED: &str = "__proem_";

fn check_names(tokens: &[Mark]) -> Result<(), String> {
    let is_reserved = tokens.iter().any(|token| token.kind == Kind::Reserved);
    if is_reserved { Err(format!("names that begin with `{RESERVED}` are proem's own")) } else { Ok(()) }
}

/// Pairs the expressions of the tree with their places, both in the order of the text.
fn sites(tokens: &[Mark], mut emitted: Vec<Emission>) -> Vec<Site> {
    emitted.sort_by_key(|emitted| emitted.offset);
    let mut emitted = emitted.into_iter();
    let mut first_alike: BTreeMap<BTreeSet<String>, usize> = BTreeMap::new();
    let mut sites = Vec::new();
    let mut open = None;
    for token in tokens {
        match token.kind {
            Kind::VariableStart => open = Some((token.start, token.end)),
            Kind::VariableEnd => {
                if let Some((offset, start)) = open.take() {
                    let Emission { names, is_bare, .. } = emitted.next().unwrap_or_default();
                    let alike = *first_alike.entry(names.clone()).or_insert(sites.len());
                    sites.push(Site { offset, start, end: token.start, names, alike, is_bare });
                }
            }
            _ => {}
        }
    }
    sites
}

/// The expression of a `{{ … }}`.
#[derive(Default)]
struct Emission {
    offset: usize,
    names: BTreeSet<String>,
    is_bare: bool,
}

struct Walk<'t> {
    outline: Outline,
    emitted: Vec<Emission>,
    costly: CostlyExpressions<'t>,
    blocks: usize,
}

impl Walk<'_> {
    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        for expression in expressions(statement) {
            self.costly.expression(expression);
        }
        match statement {
            Stmt::Set(set) => self.costly.set(set),
            Stmt::ForLoop(each) => self.costly.each(each),
            Stmt::Block(_) => self.blocks += 1,
            Stmt::CallBlock(block) => self.costly.splats(&block.call.args),
            Stmt::Do(block) => self.costly.splats(&block.call.args),
            _ => {}
        }
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => {
                let (offset, is_bare) =
                    (emit.expr.span().start_offset as usize, matches!(emit.expr, Expr::Var(_)));
                self.emitted.push(Emission { offset, names: names(&emit.expr), is_bare });
            }
            Stmt::ForLoop(each) => {
                self.assign(&each.target, &names(&each.iter));
                self.statements(&each.body);
                self.statements(&each.else_body);
            }
            Stmt::IfCond(condition) => {
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => {
                for (target, value) in &with.assignments {
                    self.assign(target, &names(value));
                }
                self.statements(&with.body);
            }
            Stmt::Set(set) => self.assign(&set.target, &names(&set.expr)),
            Stmt::SetBlock(set) => {
                let before = self.emitted.len();
                self.statements(&set.body);
                let inside =
                    self.emitted[before..].iter().flat_map(|emitted| emitted.names.clone()).collect();
                self.assign(&set.target, &inside);
            }
            Stmt::AutoEscape(block) => self.statements(&block.body),
            Stmt::FilterBlock(block) => self.statements(&block.body),
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Macro(block) => self.statements(&block.body),
            Stmt::CallBlock(block) => self.statements(&block.macro_decl.body),
            Stmt::Include(include) => self.include(&include.name, include.ignore_missing),
            Stmt::Extends(extends) => self.include(&extends.name, false),
            Stmt::Import(import) => self.include(&import.expr, false),
            Stmt::FromImport(import) => self.include(&import.expr, false),
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) | Stmt::Do(_) => {}
        }
    }

    /// Adds an include whose name is a literal. Of a list, any one may exist.
    fn include(&mut self, name: &Expr<'_>, ignores_missing: bool) {
        let offset = name.span().start_offset as usize;
        if let Some(name) = constant(name) {
            self.outline.includes.push(Include { name, offset, ignores_missing });
            return;
        }
        let items = match name {
            Expr::List(list) => &list.items,
            Expr::Tuple(tuple) => &tuple.items,
            _ => return,
        };
        // A name that is not a literal is requested by the render.
        for name in items.iter().filter_map(constant) {
            self.outline.includes.push(Include { name, offset, ignores_missing: true });
        }
    }

    fn assign(&mut self, target: &Expr<'_>, made_of: &BTreeSet<String>) {
        for name in names(target) {
            self.outline.assigned.entry(name).or_default().extend(made_of.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> SyntaxConfig {
        SyntaxConfig::default()
    }

    #[test]
    fn sites_know_their_names_and_places() {
        let text = "a {{ cwd }}{{- git.branch | upper -}} {{ file('x') ~ env['Y'] }}{% for t in tools %}{{ t }}{% endfor %}";
        let outline = outline(text, "t", &config()).unwrap();
        let found: Vec<(&str, Vec<&str>)> = outline
            .sites
            .iter()
            .map(|site| {
                (
                    text.get(site.start..site.end).unwrap().trim(),
                    site.names.iter().map(String::as_str).collect(),
                )
            })
            .collect();
        let expected: Vec<(&str, Vec<&str>)> = vec![
            ("cwd", vec!["cwd"]),
            ("git.branch | upper", vec!["git:branch"]),
            ("file('x') ~ env['Y']", vec!["env:Y", "file:x"]),
            ("t", vec!["t"]),
        ];
        assert_eq!(found, expected);
        assert_eq!(outline.assigned["t"], BTreeSet::from(["tools".to_owned()]));
        assert_eq!(outline.sites[0].offset, 2);
    }

    #[test]
    fn names_of_proem_itself_are_refused() {
        for text in ["{{ 0|__proem_at('x') }}", "{% set x = __proem_left(1) %}", "{{ x.__proem_from }}"] {
            let error = outline(text, "t", &config()).unwrap_err().to_string();
            assert!(error.contains("proem's own"), "{text}: {error}");
        }
        assert!(outline("{{ '__proem_at' }} __proem_at", "t", &config()).is_ok(), "a string is not a name");
    }

    #[test]
    fn includes_in_dead_branches_are_found() {
        let text =
            "{% if false %}{% include 'a' %}{% endif %}{% include 'b' ignore missing %}{% include name %}";
        let found = outline(text, "t", &config()).unwrap().includes;
        let found: Vec<(&str, bool)> =
            found.iter().map(|include| (include.name.as_str(), include.ignores_missing)).collect();
        assert_eq!(found, [("a", false), ("b", true)]);
    }
}
