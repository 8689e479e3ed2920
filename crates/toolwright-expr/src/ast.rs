//! The tree the parser builds and `resolve` completes in place: names become slots of a frame, loops learn
//! their cost. The evaluator walks this same tree, so nodes are small and hold what it needs.

use std::sync::Arc;

use compact_str::CompactString;

use crate::error::Span;
use crate::value::{Value, hash_text};

/// A name as written. Names are short, so they sit in the tree itself.
pub(crate) type Symbol = CompactString;

/// An expression. `height` bounds the recursion of everything that walks the tree.
pub(crate) struct Expr {
    pub(crate) kind: ExprForm,
    pub(crate) span: Span,
    pub(crate) height: u16,
}

pub(crate) enum ExprForm {
    Const(Value),
    /// A name as written; `resolve` turns it into `Slot`.
    Name(Symbol),
    Slot(u32),
    /// An arithmetic operator.
    Binary(Box<Binary>),
    /// A long run of operators of one precedence, flat so that it needs no recursion.
    Chain(Box<Chain>),
    /// A comparison of two operands.
    Compare(Box<Compare>),
    /// `a < b < c`.
    Compares(Box<Compares>),
    Not(Box<Expr>),
    Unary(UnaryOp, Box<Expr>),
    And(Box<[Expr]>),
    Or(Box<[Expr]>),
    Conditional(Box<Conditional>),
    Attribute(Box<Attribute>),
    Subscript(Box<Subscript>),
    /// `x['key']`, the key hashed beforehand.
    Item(Box<DictEntry>),
    Slice(Box<[Option<Expr>; 3]>),
    Call(Box<CallExpr>),
    List(Box<[Expr]>),
    Tuple(Box<[Expr]>),
    Set(Box<[Expr]>),
    Dict(Box<[DictItem]>),
    Starred(Box<Expr>),
    ListComp(Box<Comprehension>),
    SetComp(Box<Comprehension>),
    DictComp(Box<Comprehension>),
    Generator(Box<Comprehension>),
    Lambda(Box<Function>),
    FString(Box<[FPart]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    MatMul,
    Shl,
    Shr,
    And,
    Or,
    Xor,
}

impl BinaryOp {
    /// The operator as Python's messages spell it.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::FloorDiv => "//",
            Self::Mod => "%",
            Self::Pow => "** or pow()",
            Self::MatMul => "@",
            Self::Shl => "<<",
            Self::Shr => ">>",
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Minus,
    Plus,
    Invert,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
    Is,
    IsNot,
}

impl CompareOp {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::Is => "is",
            Self::IsNot => "is not",
        }
    }
}

pub(crate) struct Binary {
    /// There when it is made of variables and numbers only, so that trying it as machine arithmetic costs
    /// nothing.
    pub(crate) quick: Option<Operands>,
    pub(crate) op: BinaryOp,
    pub(crate) left: Expr,
    pub(crate) right: Expr,
}

/// Both sides of an operator, as machine arithmetic sees them.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub(crate) left: Operand,
    pub(crate) right: Operand,
}

#[derive(Clone, Copy)]
pub(crate) enum Operand {
    Slot(u32),
    Int(i64),
    Float(f64),
    /// A [`Binary`] that has operands itself.
    Inner,
}

pub(crate) struct Chain {
    pub(crate) first: Expr,
    pub(crate) rest: Vec<(BinaryOp, Expr)>,
}

pub(crate) struct Compare {
    /// As in [`Binary`].
    pub(crate) quick: Option<Operands>,
    pub(crate) op: CompareOp,
    pub(crate) left: Expr,
    pub(crate) right: Expr,
}

pub(crate) struct Compares {
    pub(crate) first: Expr,
    pub(crate) rest: Vec<(CompareOp, Expr)>,
}

pub(crate) struct Conditional {
    pub(crate) test: Expr,
    pub(crate) then: Expr,
    pub(crate) other: Expr,
}

pub(crate) struct Attribute {
    pub(crate) value: Expr,
    pub(crate) name: Name,
}

/// An attribute or keyword with everything looked up about it beforehand.
pub(crate) struct Name {
    pub(crate) text: Symbol,
    pub(crate) hash: u64,
    /// Its row in the method table, if any type has a method of this name.
    pub(crate) method: Option<u16>,
}

impl Name {
    pub(crate) fn new(text: Symbol) -> Self {
        Name { hash: hash_text(&text), method: crate::builtins::method_row(&text), text }
    }
}

pub(crate) struct Subscript {
    pub(crate) value: Expr,
    pub(crate) index: Expr,
}

pub(crate) struct DictEntry {
    pub(crate) value: Expr,
    pub(crate) key: Value,
    pub(crate) hash: u64,
}

pub(crate) struct CallExpr {
    pub(crate) callee: Expr,
    pub(crate) args: Vec<Argument>,
}

pub(crate) enum Argument {
    Positional(Expr),
    Star(Expr),
    Keyword(Arc<str>, Expr),
    DoubleStar(Expr),
}

pub(crate) enum DictItem {
    Pair(Expr, Expr),
    Spread(Expr),
}

/// A comprehension of any of the four kinds. `value` is only there for dicts.
pub(crate) struct Comprehension {
    pub(crate) element: Expr,
    pub(crate) value: Option<Expr>,
    pub(crate) clauses: Vec<Clause>,
    /// Loop variables that an inner function captures; each run gives them a fresh cell.
    pub(crate) cells: Vec<u32>,
    /// A generator runs later, in a frame of its own.
    pub(crate) code: Option<Arc<Code>>,
}

/// `for target in iter if ...`.
pub(crate) struct Clause {
    pub(crate) target: AssignTarget,
    pub(crate) iter: Expr,
    pub(crate) conditions: Vec<Expr>,
    /// Steps one round costs: the nodes of its conditions, and of the element for the last clause.
    pub(crate) cost: u64,
    /// No call in the body: nothing can change the list while it is walked.
    pub(crate) pure: bool,
}

pub(crate) enum AssignTarget {
    Name(Symbol, Span),
    Slot(u32),
    Tuple(Box<[AssignTarget]>, Option<usize>),
    Item(Box<Subscript>, Span),
}

pub(crate) struct Function {
    pub(crate) name: Symbol,
    pub(crate) params: Vec<Param>,
    pub(crate) body: Body,
    pub(crate) code: Option<Arc<Code>>,
}

pub(crate) struct Param {
    pub(crate) name: Symbol,
    pub(crate) default: Option<Expr>,
    pub(crate) kind: ParamKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamKind {
    Normal,
    KeywordOnly,
    Star,
    DoubleStar,
}

pub(crate) enum FPart {
    Text(Arc<str>),
    Field(Box<Field>),
}

pub(crate) struct Field {
    pub(crate) value: Expr,
    pub(crate) conversion: Option<char>,
    pub(crate) spec: Box<[FPart]>,
}

pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) span: Span,
    /// Steps it costs each time, without the bodies nested in it.
    pub(crate) cost: u64,
}

pub(crate) enum StmtKind {
    Expr(Expr),
    Assign(Vec<AssignTarget>, Expr),
    Augment(AssignTarget, BinaryOp, Expr),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    For(AssignTarget, Expr, Vec<Stmt>, Vec<Stmt>),
    Def(Box<Function>, AssignTarget),
    Return(Option<Expr>),
    Assert(Expr, Option<Expr>),
    Raise(Option<Expr>),
    Del(Vec<AssignTarget>),
    Break,
    Continue,
    Pass,
}

/// What a piece of code computes.
pub(crate) enum Body {
    Expr(Expr),
    Block(Vec<Stmt>),
    Generator(Box<Comprehension>),
    /// Moved into `Code` by `resolve`.
    Taken,
}

/// Code that runs in a frame of its own: a program, a function, a generator.
pub(crate) struct Code {
    pub(crate) body: Body,
    pub(crate) slots: Vec<SlotInfo>,
    /// Slots filled from the frame around when the function is made: (outer, inner).
    pub(crate) captures: Vec<(u32, u32)>,
    /// Slots that live in a cell because an inner function uses them.
    pub(crate) cells: Vec<u32>,
    pub(crate) name: Symbol,
    pub(crate) params: Vec<CodeParam>,
    pub(crate) cost: u64,
    /// Levels of recursion running it can take; calls are admitted by it.
    pub(crate) height: u32,
}

pub(crate) struct CodeParam {
    pub(crate) name: Symbol,
    pub(crate) slot: u32,
    pub(crate) kind: ParamKind,
    pub(crate) required: bool,
}

pub(crate) struct SlotInfo {
    pub(crate) name: Symbol,
    pub(crate) hash: u64,
    pub(crate) kind: SlotKind,
    /// Where a name of the scope is used first.
    pub(crate) first: Span,
}

pub(crate) enum SlotKind {
    /// Looked up in the scope on first use, then among the built-ins.
    Global(Option<Value>),
    /// A name of the scope seen from inside a function.
    Outer,
    Local,
}
