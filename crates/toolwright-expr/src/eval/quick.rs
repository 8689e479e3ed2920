//! Arithmetic and comparison of machine numbers, without values, reference counts or the meter: the cost of
//! an expression was paid when it was entered. Whatever is not a machine number, or does not fit one, goes
//! the general way.

use smallvec::SmallVec;

use crate::ast::{Binary, BinaryOp, Body, Code, Compare, CompareOp, Expr, ExprForm, Operand, SlotKind};
use crate::fuel::EvalLimits;
use crate::host::Scope;
use crate::value::Value;

/// A number held in registers. A float is kept as its bits: with two integers to choose from, the compiler
/// passes the whole in two registers rather than through memory.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Int(i64),
    Float(u64),
    /// Not a number of ours.
    Other,
}

impl Number {
    #[inline]
    fn float(number: f64) -> Number {
        Number::Float(number.to_bits())
    }

    pub(super) fn of(value: &Value) -> Number {
        match value {
            Value::Int(number) => Number::Int(*number),
            Value::Float(number) => Number::float(*number),
            _ => Number::Other,
        }
    }

    #[inline]
    pub(super) fn into_value(self) -> Option<Value> {
        match self {
            Number::Int(number) => Some(Value::Int(number)),
            Number::Float(bits) => Some(Value::Float(f64::from_bits(bits))),
            Number::Other => None,
        }
    }

    fn as_float(self) -> Option<f64> {
        match self {
            Number::Int(number) => Some(number as f64),
            Number::Float(bits) => Some(f64::from_bits(bits)),
            Number::Other => None,
        }
    }
}

/// Where the numbers of variables come from.
pub(super) trait Numbers {
    fn number(&mut self, slot: u32) -> Number;
}

/// The value of code that is one operator on variables and numbers, straight from the scope: most conditions
/// and counters of flows are, and need no frame.
pub(crate) fn alone(code: &Code, scope: &dyn Scope, limits: &EvalLimits) -> Option<Value> {
    let Body::Expr(Expr { kind, .. }) = &code.body else { return None };
    if code.cost > limits.steps {
        return None;
    }
    match kind {
        ExprForm::Binary(node) if node.quick.is_some() => {
            binary(&mut Direct { code, scope }, node).into_value()
        }
        ExprForm::Compare(node) if node.quick.is_some() => {
            compare(&mut Direct { code, scope }, node).map(Value::Bool)
        }
        _ => None,
    }
}

/// Variables looked up each time they are met.
struct Direct<'a> {
    code: &'a Code,
    scope: &'a dyn Scope,
}

impl Numbers for Direct<'_> {
    fn number(&mut self, slot: u32) -> Number {
        match self.code.slots.get(slot as usize) {
            Some(info) if matches!(info.kind, SlotKind::Global(_)) => {
                self.scope.get_hashed(&info.name, info.hash).map_or(Number::Other, |value| Number::of(&value))
            }
            _ => Number::Other,
        }
    }
}

/// `left op right`, when both are numbers and the result is one.
pub(super) fn binary<S: Numbers>(source: &mut S, node: &Binary) -> Number {
    let Some(operands) = &node.quick else { return Number::Other };
    let left = operand(source, operands.left, &node.left);
    let right = operand(source, operands.right, &node.right);
    let (Number::Int(a), Number::Int(b)) = (left, right) else {
        return floats(node.op, left, right);
    };
    if node.op == BinaryOp::Div && b != 0 && is_exact(a) && is_exact(b) {
        return Number::float(a as f64 / b as f64);
    }
    integers(node.op, a, b).map_or(Number::Other, Number::Int)
}

/// An operator on integers whose result is one, when it fits.
#[inline(always)]
fn integers(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Mod if b > 0 => Some(a.rem_euclid(b)),
        BinaryOp::FloorDiv if b > 0 => Some(a.div_euclid(b)),
        _ => None,
    }
}

/// The comparison of two integers.
#[inline]
pub(super) fn compare<S: Numbers>(source: &mut S, node: &Compare) -> Option<bool> {
    let operands = node.quick.as_ref()?;
    let left = operand(source, operands.left, &node.left);
    let right = operand(source, operands.right, &node.right);
    match (left, right) {
        (Number::Int(a), Number::Int(b)) => ordered(node.op, a, b),
        _ => None,
    }
}

#[inline(always)]
fn ordered(op: CompareOp, a: i64, b: i64) -> Option<bool> {
    Some(match op {
        CompareOp::Eq => a == b,
        CompareOp::Ne => a != b,
        CompareOp::Lt => a < b,
        CompareOp::Le => a <= b,
        CompareOp::Gt => a > b,
        CompareOp::Ge => a >= b,
        CompareOp::In | CompareOp::NotIn | CompareOp::Is | CompareOp::IsNot => return None,
    })
}

#[inline(always)]
fn operand<S: Numbers>(source: &mut S, operand: Operand, expr: &Expr) -> Number {
    match operand {
        Operand::Slot(slot) => source.number(slot),
        Operand::Int(number) => Number::Int(number),
        Operand::Float(number) => Number::float(number),
        Operand::Inner => match &expr.kind {
            ExprForm::Binary(inner) => binary(source, inner),
            _ => Number::Other,
        },
    }
}

/// Arithmetic in which at least one side is a float.
#[inline(never)]
fn floats(op: BinaryOp, left: Number, right: Number) -> Number {
    let (Some(a), Some(b)) = (left.as_float(), right.as_float()) else { return Number::Other };
    match op {
        BinaryOp::Add => Number::float(a + b),
        BinaryOp::Sub => Number::float(a - b),
        BinaryOp::Mul => Number::float(a * b),
        BinaryOp::Div if b != 0.0 => Number::float(a / b),
        _ => Number::Other,
    }
}

/// Whether an integer is a float without rounding.
fn is_exact(number: i64) -> bool {
    number.unsigned_abs() <= 1 << 53
}

/// A run of operators on a loop variable and integers that stay the same, such as `i % 2 == 0` or `i * 2 +
/// 1`: what most loops over numbers do in each round.
pub(super) struct Chain {
    first: Term,
    rest: SmallVec<[(Operator, Term); 4]>,
}

#[derive(Clone, Copy)]
enum Operator {
    Binary(BinaryOp),
    Compare(CompareOp),
}

#[derive(Clone, Copy)]
enum Term {
    Item,
    Fixed(i64),
}

impl Chain {
    /// A condition as a chain, for the loop variable in `slot`.
    pub(super) fn condition<S: Numbers>(source: &mut S, slot: u32, expr: &Expr) -> Option<Chain> {
        let ExprForm::Compare(node) = &expr.kind else { return Chain::element(source, slot, expr) };
        let mut chain = Chain::element(source, slot, &node.left)?;
        chain.rest.push((Operator::Compare(node.op), Term::of(source, slot, &node.right)?));
        Some(chain)
    }

    /// An integer as a chain.
    pub(super) fn element<S: Numbers>(source: &mut S, slot: u32, expr: &Expr) -> Option<Chain> {
        let ExprForm::Binary(node) = &expr.kind else {
            return Some(Chain { first: Term::of(source, slot, expr)?, rest: SmallVec::new() });
        };
        let mut chain = Chain::element(source, slot, &node.left)?;
        chain.rest.push((Operator::Binary(node.op), Term::of(source, slot, &node.right)?));
        Some(chain)
    }

    /// The result for one value of the loop variable; a condition gives 1 or 0. `None` sends it the general
    /// way.
    #[inline]
    pub(super) fn value(&self, item: i64) -> Option<i64> {
        let mut value = self.first.value(item);
        for (operator, term) in &self.rest {
            value = match operator {
                Operator::Binary(op) => integers(*op, value, term.value(item))?,
                Operator::Compare(op) => i64::from(ordered(*op, value, term.value(item))?),
            };
        }
        Some(value)
    }
}

impl Term {
    fn of<S: Numbers>(source: &mut S, slot: u32, expr: &Expr) -> Option<Term> {
        let number = match &expr.kind {
            ExprForm::Slot(own) if *own == slot => return Some(Term::Item),
            ExprForm::Slot(other) => source.number(*other),
            ExprForm::Const(value) => Number::of(value),
            _ => Number::Other,
        };
        match number {
            Number::Int(number) => Some(Term::Fixed(number)),
            Number::Float(_) | Number::Other => None,
        }
    }

    #[inline(always)]
    fn value(self, item: i64) -> i64 {
        match self {
            Term::Item => item,
            Term::Fixed(number) => number,
        }
    }
}
