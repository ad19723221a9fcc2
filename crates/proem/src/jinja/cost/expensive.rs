//! Finds the places of a template whose cost grows with the size of a value: one step there may walk all of it.
//!
//! The syntax tree gives the structure, and the tokens give the exact ranges: those in the tree leave out brackets, and
//! begin too late after `x[a]` and too early for comparisons.

use minijinja::machinery::ast::{self, BinOpKind, CallArg, Expr};

use crate::jinja::syntax::expression::{argument, leftmost, parts};
use crate::jinja::syntax::tokens::{Kind, Mark};

/// Names of functions that are put around expressions; this one is for the left operands.
pub(crate) const LEFT: &str = "__proem_left";
pub(crate) const PLUS: &str = "__proem_plus";
pub(crate) const TIMES: &str = "__proem_times";
/// For the last operand of a chain, which also ends it.
pub(crate) const LAST_PLUS: &str = "__proem_last_plus";
pub(crate) const LAST_TIMES: &str = "__proem_last_times";
/// For the operand of `[a:b]`, which is walked character by character.
pub(crate) const CUT: &str = "__proem_cut";
/// For the operand of `[i]`.
pub(crate) const BASE: &str = "__proem_base";
/// For values that are compared, searched, or walked at once.
pub(crate) const WEIGH: &str = "__proem_weigh";
/// For the value that a loop walks.
pub(crate) const LOOP: &str = "__proem_loop";
/// For a new value.
pub(crate) const MADE: &str = "__proem_made";
/// For a value that a namespace takes.
pub(crate) const FIELD: &str = "__proem_field";

/// An expression that is wrapped in a function call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrap {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) function: &'static str,
    /// Further arguments, as they are written in the template.
    pub(crate) more: Vec<String>,
}

/// The longest text that is compared without being charged.
const SMALL_BYTES: usize = 64;

/// Collects the expressions of a template that are wrapped in function calls.
pub(crate) struct CostlyExpressions<'t> {
    pub(crate) text: &'t str,
    pub(crate) tokens: &'t [Mark],
    pub(crate) wraps: Vec<Wrap>,
}

impl CostlyExpressions<'_> {
    fn wrap(&mut self, start: usize, end: usize, function: &'static str) {
        self.wraps.push(Wrap { start, end, function, more: Vec::new() });
    }

    /// Returns the first token that begins at a byte or after it.
    fn at(&self, offset: usize) -> usize {
        self.tokens.partition_point(|token| token.start < offset)
    }

    /// Returns the first token after an expression that ends at a byte, and after the brackets around it.
    fn behind(&self, end: usize) -> Option<(usize, &Mark)> {
        let first = self.at(end);
        self.tokens.iter().enumerate().skip(first).find(|(_, token)| token.kind != Kind::Close)
    }

    /// Returns the token that closes the bracket opened by another token.
    fn closing(&self, open: usize) -> Option<&Mark> {
        let end = self.end_of(open + 1, |_| false)?;
        self.tokens.get(end)
    }

    /// Returns the first token from `first` on that is outside of all brackets and closes one, or matches `is_end`.
    fn end_of(&self, first: usize, is_end: impl Fn(Kind) -> bool) -> Option<usize> {
        let mut depth = 0_usize;
        for (index, token) in self.tokens.iter().enumerate().skip(first) {
            match token.kind {
                Kind::Open | Kind::BracketOpen => depth += 1,
                Kind::Close if depth == 0 => return Some(index),
                Kind::Close => depth -= 1,
                Kind::VariableEnd | Kind::BlockEnd => return Some(index),
                kind if depth == 0 && is_end(kind) => return Some(index),
                _ => {}
            }
        }
        None
    }

    /// Adds the costly parts of an expression.
    pub(crate) fn expression(&mut self, expression: &Expr<'_>) {
        if let Some(is_product) = chain_kind(expression) {
            return self.chain(expression, is_product);
        }
        match expression {
            Expr::BinOp(binary) if is_comparison(&binary.op) => {
                self.compare(expression, &[&binary.left, &binary.right]);
            }
            Expr::Compare(compare) => {
                let operands: Vec<&Expr<'_>> = std::iter::once(&compare.expr)
                    .chain(compare.ops.iter().map(|operation| &operation.expr))
                    .collect();
                self.compare(expression, &operands);
            }
            Expr::Slice(slice) => self.slice(expression, &slice.expr),
            Expr::GetItem(get) => self.item(expression, get),
            Expr::List(_) | Expr::Map(_) if !is_written_out(expression) => self.literal(expression),
            Expr::Tuple(tuple) if !is_written_out(expression) && !is_bare(tuple, expression) => {
                self.literal(expression);
            }
            Expr::Call(call) => self.call(expression, call),
            Expr::Filter(filter) => self.splats(&filter.args),
            Expr::Test(test) => self.splats(&test.args),
            _ => {}
        }
        for part in parts(expression) {
            self.expression(part);
        }
    }

    /// Adds a chain of `~` and `+`, or of `*`, which is evaluated from left to right.
    fn chain(&mut self, expression: &Expr<'_>, is_product: bool) {
        let span = expression.span();
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        let (mut operators, mut makes_lists, mut left) = (Vec::new(), is_product, expression);
        while let Expr::BinOp(binary) = left {
            makes_lists |= matches!(binary.op, BinOpKind::Add);
            let Some((index, operator)) = self.behind(binary.left.span().end_offset as usize) else { return };
            operators.push((operator.start, operator.end));
            // An operand in brackets is a chain of its own.
            let before = index.checked_sub(1).and_then(|before| self.tokens.get(before));
            let is_bracketed = before.is_some_and(|before| {
                before.kind == Kind::Close && before.end > binary.left.span().end_offset as usize
            });
            self.expression(&binary.right);
            left = &binary.left;
            if is_bracketed || chain_kind(left) != Some(is_product) {
                break;
            }
        }
        self.expression(left);
        operators.reverse();
        let (inner, last) = if is_product { (TIMES, LAST_TIMES) } else { (PLUS, LAST_PLUS) };
        let count = operators.len();
        for (index, (from, to)) in operands(start, &operators, end).into_iter().enumerate() {
            let function = match index {
                0 => LEFT,
                index if index == count => last,
                _ => inner,
            };
            self.wrap(from, to, function);
        }
        if makes_lists {
            self.wrap(start, end, MADE);
        }
    }

    fn compare(&mut self, expression: &Expr<'_>, compared: &[&Expr<'_>]) {
        let span = expression.span();
        // The span of a comparison begins with the token before it.
        let Some(start) = self.tokens.get(self.at(span.start_offset as usize + 1)).map(|first| first.start)
        else {
            return;
        };
        let operator = |left: &&Expr<'_>| {
            let (index, operator) = self.behind(left.span().end_offset as usize)?;
            // `not in` is two tokens.
            let last = if operator.kind == Kind::Not { self.tokens.get(index + 1)? } else { operator };
            Some((operator.start, last.end))
        };
        let before_last = compared.len().saturating_sub(1);
        let Some(operators) = compared.iter().take(before_last).map(operator).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        for ((from, to), operand) in
            operands(start, &operators, span.end_offset as usize).into_iter().zip(compared)
        {
            if !is_small(operand) {
                self.wrap(from, to, WEIGH);
            }
        }
    }

    fn slice(&mut self, expression: &Expr<'_>, base: &Expr<'_>) {
        let start = leftmost(expression);
        let Some((_, bracket)) = self.behind(base.span().end_offset as usize) else { return };
        let bracket = bracket.start;
        self.wrap(start, bracket, CUT);
        self.wrap(start, expression.span().end_offset as usize, MADE);
    }

    /// Adds `x[key]` or `x.0`.
    fn item(&mut self, expression: &Expr<'_>, get: &ast::GetItem<'_>) {
        let Some((index, bracket)) = self.behind(get.expr.span().end_offset as usize) else { return };
        let (from, kind) = (bracket.start, bracket.kind);
        let key_start = bracket.end;
        let is_text = matches!(&get.subscript_expr, Expr::Const(key) if key.value.as_str().is_some());
        // Looking up a field of a map or a namespace is not charged.
        if !is_text {
            self.wrap(leftmost(expression), from, BASE);
        }
        if kind == Kind::BracketOpen
            && !is_small(&get.subscript_expr)
            && let Some(close) = self.closing(index).map(|close| close.start)
        {
            self.wrap(key_start, close, WEIGH);
        }
    }

    fn literal(&mut self, expression: &Expr<'_>) {
        let span = expression.span();
        self.wrap(span.start_offset as usize, span.end_offset as usize, MADE);
    }

    fn call(&mut self, expression: &Expr<'_>, call: &ast::Call<'_>) {
        self.splats(&call.args);
        // The only methods are those of `loop`: `cycle` returns its argument, and `changed` compares it.
        let Expr::GetAttr(method) = &call.expr else { return };
        if matches!(&method.expr, Expr::Var(var) if var.id == "self") {
            return;
        }
        self.wrap(leftmost(expression), expression.span().end_offset as usize, MADE);
        if method.name == "changed" {
            self.arguments(call.expr.span().end_offset as usize);
        }
    }

    /// Adds the arguments after `*` and `**`: all of them are walked.
    pub(crate) fn splats(&mut self, arguments: &[CallArg<'_>]) {
        for own in arguments {
            if !matches!(own, CallArg::PosSplat(_) | CallArg::KwargSplat(_)) {
                continue;
            }
            let first = self.at(leftmost(argument(own)));
            let is_splat = |token: &&Mark| matches!(token.kind, Kind::Times | Kind::Power);
            let Some(star) = self.tokens.iter().take(first).rposition(|token| is_splat(&token)) else {
                continue;
            };
            self.argument(star + 1);
        }
    }

    /// Adds every argument in the brackets after a byte.
    fn arguments(&mut self, callee_end: usize) {
        let Some((open, _)) = self.behind(callee_end) else { return };
        let mut first = open + 1;
        while let Some(token) = self.tokens.get(first) {
            if token.kind == Kind::Close {
                return;
            }
            let is_star = matches!(token.kind, Kind::Times | Kind::Power);
            let is_named = self.tokens.get(first + 1).is_some_and(|next| next.kind == Kind::Assign);
            let value = first + if is_named { 2 } else { usize::from(is_star) };
            if !is_star {
                self.argument(value);
            }
            let Some(end) = self.end_of(value, |kind| kind == Kind::Comma) else { return };
            if self.tokens.get(end).is_none_or(|token| token.kind != Kind::Comma) {
                return;
            }
            first = end + 1;
        }
    }

    /// Adds the argument that begins with a token.
    fn argument(&mut self, first: usize) {
        let Some(end) = self.end_of(first, |kind| kind == Kind::Comma) else { return };
        if let (Some(from), Some(to)) = (self.tokens.get(first), self.tokens.get(end)) {
            let (from, to) = (from.start, to.start);
            self.wrap(from, to, WEIGH);
        }
    }

    /// Adds the value that a loop walks: the characters of a text are counted first.
    pub(crate) fn each(&mut self, each: &ast::ForLoop<'_>) {
        let Some((index, word)) = self.behind(each.target.span().end_offset as usize) else { return };
        let start = word.end;
        let is_filtered = each.filter_expr.is_some();
        let Some(end) = self.end_of(index + 1, |kind| is_filtered && kind == Kind::If) else { return };
        // `recursive` is the last word.
        let end = if each.recursive && !is_filtered { end - 1 } else { end };
        if let Some(end) = self.tokens.get(end).map(|end| end.start) {
            self.wrap(start, end, LOOP);
        }
    }

    /// Adds the value that a `set` assigns, if it is a list without brackets or a namespace takes it.
    pub(crate) fn set(&mut self, set: &ast::Set<'_>) {
        let is_list = matches!(&set.expr, Expr::Tuple(tuple) if is_bare(tuple, &set.expr));
        let mut namespaces = Vec::new();
        self.namespaces(&set.target, &mut namespaces);
        if namespaces.is_empty() && !is_list {
            return;
        }
        let Some((_, assign)) = self.behind(set.target.span().end_offset as usize) else { return };
        let start = assign.end;
        let Some(end) = self.end_of(self.at(start), |_| false).and_then(|end| self.tokens.get(end)) else {
            return;
        };
        let (end, function) = (end.start, if namespaces.is_empty() { MADE } else { FIELD });
        self.wraps.push(Wrap { start, end, function, more: namespaces });
    }

    /// Returns the namespaces whose fields a target sets, as they are written.
    fn namespaces(&self, target: &Expr<'_>, found: &mut Vec<String>) {
        match target {
            Expr::GetAttr(get) => {
                let written = self.text.get(leftmost(&get.expr)..get.expr.span().end_offset as usize);
                found.extend(written.map(str::to_owned));
            }
            Expr::List(list) => list.items.iter().for_each(|item| self.namespaces(item, found)),
            _ => {}
        }
    }
}

/// Returns the ranges of the operands between operators, white space included.
fn operands(start: usize, operators: &[(usize, usize)], end: usize) -> Vec<(usize, usize)> {
    let starts = std::iter::once(start).chain(operators.iter().map(|(_, end)| *end));
    let ends = operators.iter().map(|(start, _)| *start).chain(std::iter::once(end));
    starts.zip(ends).collect()
}

/// Tells whether a list in a `set` has no brackets. Its span then begins with the second item.
fn is_bare(tuple: &ast::Tuple<'_>, expression: &Expr<'_>) -> bool {
    let start = expression.span().start_offset;
    tuple.items.first().is_some_and(|first| first.span().start_offset < start)
}

/// Tells whether an expression is a list or map of literal texts and numbers: it cannot be larger than the template.
fn is_written_out(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(_) => true,
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => parts(expression).into_iter().all(is_written_out),
        _ => false,
    }
}

/// Tells whether an expression is a number, a short text or similar.
fn is_small(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(own) => own.value.as_str().is_none_or(|text| text.len() <= SMALL_BYTES),
        _ => false,
    }
}

/// Returns true for a product, false for a sum, and `None` for other expressions.
fn chain_kind(expression: &Expr<'_>) -> Option<bool> {
    match expression {
        Expr::BinOp(binary) => match binary.op {
            BinOpKind::Concat | BinOpKind::Add => Some(false),
            BinOpKind::Mul => Some(true),
            _ => None,
        },
        _ => None,
    }
}

fn is_comparison(operator: &BinOpKind) -> bool {
    matches!(
        operator,
        BinOpKind::Eq
            | BinOpKind::Ne
            | BinOpKind::Lt
            | BinOpKind::Lte
            | BinOpKind::Gt
            | BinOpKind::Gte
            | BinOpKind::In
    )
}
