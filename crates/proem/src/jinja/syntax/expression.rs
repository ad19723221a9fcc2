//! Walks Jinja expressions: their parts, and the names in them.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{self, Expr, Stmt};

/// Returns the expressions of a statement itself, without its body.
pub(crate) fn expressions<'s, 'a>(statement: &'s Stmt<'a>) -> Vec<&'s Expr<'a>> {
    match statement {
        Stmt::EmitExpr(emit) => vec![&emit.expr],
        Stmt::ForLoop(each) => std::iter::once(&each.iter).chain(&each.filter_expr).collect(),
        Stmt::IfCond(condition) => vec![&condition.expr],
        Stmt::WithBlock(with) => with.assignments.iter().map(|(_, value)| value).collect(),
        Stmt::Set(set) => vec![&set.expr],
        Stmt::SetBlock(set) => set.filter.iter().collect(),
        Stmt::FilterBlock(block) => vec![&block.filter],
        Stmt::Include(include) => vec![&include.name],
        Stmt::Macro(block) => block.defaults.iter().collect(),
        Stmt::CallBlock(block) => {
            call_expressions(&block.call).into_iter().chain(&block.macro_decl.defaults).collect()
        }
        Stmt::Extends(extends) => vec![&extends.name],
        Stmt::Import(import) => vec![&import.expr],
        Stmt::FromImport(import) => vec![&import.expr],
        Stmt::AutoEscape(block) => vec![&block.enabled],
        Stmt::Do(block) => call_expressions(&block.call),
        _ => Vec::new(),
    }
}

fn call_expressions<'s, 'a>(call: &'s ast::Call<'a>) -> Vec<&'s Expr<'a>> {
    std::iter::once(&call.expr).chain(call.args.iter().map(argument)).collect()
}

pub(crate) fn argument<'s, 'a>(argument: &'s ast::CallArg<'a>) -> &'s Expr<'a> {
    match argument {
        ast::CallArg::Pos(expression)
        | ast::CallArg::Kwarg(_, expression)
        | ast::CallArg::PosSplat(expression)
        | ast::CallArg::KwargSplat(expression) => expression,
    }
}

/// Returns the first byte of an expression. The span of `x[a][b]` begins with its own bracket, so the inner expressions
/// are examined as well.
pub(crate) fn leftmost(expression: &Expr<'_>) -> usize {
    let own = expression.span().start_offset as usize;
    let before = match expression {
        Expr::Slice(slice) => Some(&slice.expr),
        Expr::GetAttr(get) => Some(&get.expr),
        Expr::GetItem(get) => Some(&get.expr),
        Expr::Call(call) => Some(&call.expr),
        Expr::Filter(filter) => filter.expr.as_ref(),
        Expr::Test(test) => Some(&test.expr),
        _ => None,
    };
    before.map_or(own, |before| own.min(leftmost(before)))
}

/// Returns the text of a literal. Nothing is computed: a template may multiply texts.
pub(crate) fn constant(expression: &Expr<'_>) -> Option<String> {
    match expression {
        Expr::Const(own) => own.value.as_str().map(str::to_owned),
        _ => None,
    }
}

/// Returns the direct parts of an expression.
pub(crate) fn parts<'s, 'a>(expression: &'s Expr<'a>) -> Vec<&'s Expr<'a>> {
    match expression {
        Expr::Var(_) | Expr::Const(_) => Vec::new(),
        Expr::Slice(slice) => {
            let ends = [&slice.start, &slice.stop, &slice.step];
            std::iter::once(&slice.expr).chain(ends.into_iter().flatten()).collect()
        }
        Expr::UnaryOp(unary) => vec![&unary.expr],
        Expr::BinOp(binary) => vec![&binary.left, &binary.right],
        Expr::Compare(compare) => std::iter::once(&compare.expr)
            .chain(compare.ops.iter().map(|operation| &operation.expr))
            .collect(),
        Expr::IfExpr(choice) => {
            [&choice.test_expr, &choice.true_expr].into_iter().chain(&choice.false_expr).collect()
        }
        Expr::Filter(filter) => filter.expr.iter().chain(filter.args.iter().map(argument)).collect(),
        Expr::Test(test) => std::iter::once(&test.expr).chain(test.args.iter().map(argument)).collect(),
        Expr::GetAttr(get) => vec![&get.expr],
        Expr::GetItem(get) => vec![&get.expr, &get.subscript_expr],
        Expr::Call(call) => call_expressions(call),
        Expr::List(list) => list.items.iter().collect(),
        Expr::Tuple(tuple) => tuple.items.iter().collect(),
        Expr::Map(map) => map.keys.iter().chain(&map.values).collect(),
    }
}

/// Returns the names in an expression: `git.branch`, `file("x")` as `file:x`, `tools`.
pub(crate) fn names(expression: &Expr<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(expression, &mut found);
    found
}

fn collect(expression: &Expr<'_>, found: &mut BTreeSet<String>) {
    match expression {
        Expr::Var(var) => {
            found.insert(var.id.to_owned());
        }
        Expr::GetAttr(get) => match &get.expr {
            Expr::Var(var) => {
                found.insert(format!("{}:{}", var.id, get.name));
            }
            other => collect(other, found),
        },
        Expr::GetItem(get) => match (&get.expr, constant(&get.subscript_expr)) {
            (Expr::Var(var), Some(key)) => {
                found.insert(format!("{}:{key}", var.id));
            }
            _ => parts(expression).into_iter().for_each(|part| collect(part, found)),
        },
        Expr::Call(call) => collect_call(call, found),
        _ => parts(expression).into_iter().for_each(|part| collect(part, found)),
    }
}

fn collect_call(call: &ast::Call<'_>, found: &mut BTreeSet<String>) {
    let first = call.args.first().and_then(|argument| match argument {
        ast::CallArg::Pos(Expr::Const(value)) => value.value.as_str().map(str::to_owned),
        _ => None,
    });
    match (&call.expr, first) {
        (Expr::Var(var), Some(path)) if var.id == "file" => {
            found.insert(format!("file:{path}"));
        }
        (Expr::Var(_), _) => call.args.iter().for_each(|own| collect(argument(own), found)),
        _ => call_expressions(call).into_iter().for_each(|part| collect(part, found)),
    }
}
