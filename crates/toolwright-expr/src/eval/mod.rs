//! Walks the tree. Straight-line code is paid for when it is entered, loops by the round, calls by the call,
//! so that no step of the walk has to look at the meter. Calls, displays, loops,
//! assignments, statements and what leaves have a file each.

mod call;
mod display;
mod exec;
mod loops;
mod quick;
mod settle;
mod store;

pub(crate) use call::{Args, Closure};
pub(crate) use loops::Generator;
pub(crate) use quick::alone;

use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

use self::quick::{Number, Numbers};
use crate::ast::{
    Attribute, Binary, BinaryOp, Chain, Code, Compare, CompareOp, Conditional, DictEntry, Expr, ExprForm,
    Name, SlotKind,
};
use crate::error::{Error, ErrorKind, Span, nearest};
use crate::fuel::{EvalLimits, Fuel};
use crate::host::Scope;
use crate::iter::Iter;
use crate::ops;
use crate::types::Type;
use crate::value::{Dict, Object, ObjectData, TextKey, Value, ViewKind, lock};

/// The variables of the code that is running.
pub(crate) type Frame = SmallVec<[Value; 8]>;

/// A frame for a piece of code, nothing in it bound yet.
#[inline]
fn frame_of(code: &Code) -> Frame {
    let count = code.slots.len();
    let few = [const { Value::Unbound }; 8];
    if count <= few.len() {
        return Frame::from_buf_and_len(few, count);
    }
    let mut frame = Frame::new();
    frame.resize(count, Value::Unbound);
    frame
}

/// The code that is running: the host's own, or that of a function, which may go away while it runs.
enum CodeRef<'a> {
    Lent(&'a Code),
    Shared(Arc<Code>),
}

impl Deref for CodeRef<'_> {
    type Target = Code;

    fn deref(&self) -> &Code {
        match self {
            CodeRef::Lent(code) => code,
            CodeRef::Shared(code) => code,
        }
    }
}

/// One evaluation.
pub(crate) struct Eval<'a> {
    pub(crate) fuel: Fuel<'a>,
    scope: &'a dyn Scope,
    code: CodeRef<'a>,
    frame: Frame,
    /// Unbound globals are looked up in the scope when first used. Scripts fill them beforehand.
    lazy: bool,
}

impl Numbers for Eval<'_> {
    #[inline(always)]
    fn number(&mut self, slot: u32) -> Number {
        match self.frame.get(slot as usize) {
            Some(Value::Int(number)) => Number::Int(*number),
            _ => self.rare_number(slot),
        }
    }
}

impl<'a> Eval<'a> {
    pub(crate) fn new(code: &'a Code, scope: &'a dyn Scope, limits: &'a EvalLimits) -> Self {
        Self::with_fuel(code, scope, Fuel::new(limits))
    }

    /// Continues an evaluation with the remaining fuel of others.
    pub(crate) fn with_fuel(code: &'a Code, scope: &'a dyn Scope, fuel: Fuel<'a>) -> Self {
        Eval { fuel, scope, code: CodeRef::Lent(code), frame: frame_of(code), lazy: true }
    }

    pub(crate) fn scope(&self) -> &'a dyn Scope {
        self.scope
    }

    /// The value of an expression.
    pub(crate) fn eval(&mut self, expr: &Expr) -> Result<Value, Error> {
        match &expr.kind {
            ExprForm::Const(value) => Ok(value.clone()),
            ExprForm::Slot(slot) => match self.frame.get(*slot as usize) {
                Some(Value::Int(number)) => Ok(Value::Int(*number)),
                _ => self.load(*slot, expr.span),
            },
            ExprForm::Binary(binary) => self.binary(binary, expr.span),
            ExprForm::Compare(compare) => self.compare(compare, expr.span).map(Value::Bool),
            ExprForm::Not(value) => Ok(Value::Bool(!self.condition(value)?)),
            ExprForm::And(items) => self.junction(items, false),
            ExprForm::Or(items) => self.junction(items, true),
            ExprForm::Conditional(conditional) => self.conditional(conditional),
            ExprForm::Attribute(attribute) => self.attribute(attribute, expr.span),
            ExprForm::Subscript(subscript) => {
                let value = self.eval(&subscript.value)?;
                let index = self.eval(&subscript.index)?;
                ops::sequence::subscript(&value, &index, &mut self.fuel).map_err(|error| error.at(expr.span))
            }
            ExprForm::Item(item) => self.item(item, expr.span),
            ExprForm::Call(call) => self.call(call, expr.span),
            ExprForm::FString(parts) => self.fstring(parts).map_err(|error| error.at(expr.span)),
            ExprForm::ListComp(comprehension) => self.list_comprehension(comprehension),
            _ => self.eval_rare(expr),
        }
    }

    /// The kinds that are met less often, kept apart so that `eval` itself needs little stack.
    #[inline(never)]
    fn eval_rare(&mut self, expr: &Expr) -> Result<Value, Error> {
        match &expr.kind {
            ExprForm::List(items) => Ok(Value::list(self.items(items)?)),
            ExprForm::Tuple(items) => Ok(Value::tuple(self.items(items)?)),
            ExprForm::Set(items) => self.set(items),
            ExprForm::Dict(items) => self.dict(items),
            ExprForm::Chain(chain) => self.chain(chain, expr.span),
            ExprForm::Compares(compares) => {
                let mut left = self.eval(&compares.first)?;
                for (op, operand) in &compares.rest {
                    let right = self.eval(operand)?;
                    if !self.compare_values(*op, &left, &right).map_err(|error| error.at(expr.span))? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            ExprForm::Unary(op, operand) => {
                let value = self.eval(operand)?;
                ops::unary(*op, &value, &mut self.fuel).map_err(|error| error.at(expr.span))
            }
            ExprForm::Slice(parts) => {
                let mut values = [Value::None, Value::None, Value::None];
                for (slot, part) in values.iter_mut().zip(parts.iter()) {
                    if let Some(part) = part {
                        *slot = self.eval(part)?;
                    }
                }
                Ok(ops::sequence::slice_value(values))
            }
            ExprForm::Starred(value) => Err(Error::syntax("cannot use starred expression here", value.span)),
            ExprForm::ListComp(comprehension) => self.list_comprehension(comprehension),
            ExprForm::SetComp(comprehension) => self.set_comprehension(comprehension),
            ExprForm::DictComp(comprehension) => self.dict_comprehension(comprehension),
            ExprForm::Generator(comprehension) => {
                self.generator(comprehension).map_err(|error| error.at(expr.span))
            }
            ExprForm::Lambda(function) => self.closure(function),
            ExprForm::Name(name) => {
                Err(Error::runtime(format!("name '{name}' was never resolved")).at(expr.span))
            }
            _ => self.eval(expr),
        }
    }

    /// The value of a variable.
    #[inline]
    fn load(&mut self, slot: u32, span: Span) -> Result<Value, Error> {
        match self.frame.get(slot as usize) {
            Some(Value::Unbound) | None => self.load_unbound(slot, span),
            Some(Value::Object(object)) => match object.data() {
                ObjectData::Cell(cell) => {
                    let value = lock(cell).clone();
                    if value.is_unbound() { self.load_unbound(slot, span) } else { Ok(value) }
                }
                _ => Ok(Value::Object(object.clone())),
            },
            Some(value) => Ok(value.clone()),
        }
    }

    #[inline(never)]
    fn load_unbound(&mut self, slot: u32, span: Span) -> Result<Value, Error> {
        if let Some(value) = self.resolve_global(slot) {
            if let Some(place) = self.frame.get_mut(slot as usize) {
                *place = value.clone();
            }
            return Ok(value);
        }
        Err(self.unknown_name(slot, span))
    }

    /// Looks a global up in the scope, then among the built-ins.
    fn resolve_global(&self, slot: u32) -> Option<Value> {
        let info = self.code.slots.get(slot as usize)?;
        match &info.kind {
            SlotKind::Global(builtin) if self.lazy => {
                self.scope.get_hashed(&info.name, info.hash).or_else(|| builtin.clone())
            }
            _ => None,
        }
    }

    #[cold]
    fn unknown_name(&self, slot: u32, span: Span) -> Error {
        let Some(info) = self.code.slots.get(slot as usize) else {
            return Error::runtime("variable outside the frame").at(span);
        };
        let name = &*info.name;
        if matches!(info.kind, SlotKind::Local) {
            let message =
                format!("cannot access local variable '{name}' where it is not associated with a value");
            return Error::new(ErrorKind::UnknownName, message).with_class("UnboundLocalError").at(span);
        }
        let mut known: Vec<String> = Vec::new();
        self.scope.names(&mut |name| {
            if known.len() < 1_000 && (!name.starts_with('_') || name == "_") {
                known.push(name.to_owned());
            }
        });
        let candidates = known.iter().map(String::as_str).chain(crate::builtins::names());
        let error = Error::new(ErrorKind::UnknownName, format!("name '{name}' is not defined")).at(span);
        match (name, nearest(name, candidates)) {
            ("null" | "nil", _) => error.with_hint("Python's word for it is None"),
            ("true", _) => error.with_hint("Python's word for it is True"),
            ("false", _) => error.with_hint("Python's word for it is False"),
            (_, Some(close)) => error.with_hint(format!("did you mean `{close}`?")),
            (_, None) => error,
        }
    }

    #[inline]
    fn binary(&mut self, binary: &Binary, span: Span) -> Result<Value, Error> {
        if binary.quick.is_some()
            && let Some(value) = quick::binary(self, binary).into_value()
        {
            return Ok(value);
        }
        self.binary_general(binary, span)
    }

    #[inline(never)]
    fn binary_general(&mut self, binary: &Binary, span: Span) -> Result<Value, Error> {
        let left = self.eval(&binary.left)?;
        let right = self.eval(&binary.right)?;
        self.binary_values(binary.op, &left, &right, span)
    }

    /// A variable that is not an integer, or a scope variable on its first use, as a machine number.
    #[inline(never)]
    fn rare_number(&mut self, slot: u32) -> Number {
        match self.frame.get(slot as usize) {
            Some(Value::Unbound) => {}
            Some(value) => return Number::of(value),
            None => return Number::Other,
        }
        let Some(value) = self.resolve_global(slot) else { return Number::Other };
        let number = Number::of(&value);
        if let Some(place) = self.frame.get_mut(slot as usize) {
            *place = value;
        }
        number
    }

    #[inline(never)]
    fn item(&mut self, item: &DictEntry, span: Span) -> Result<Value, Error> {
        let value = self.eval(&item.value)?;
        if let (Value::Dict(dict), Value::Str(key)) = (&value, &item.key)
            && let Some(found) = dict.get_hashed(&TextKey::with_hash(key, item.hash))
        {
            return Ok(found);
        }
        ops::sequence::subscript(&value, &item.key, &mut self.fuel).map_err(|error| error.at(span))
    }

    #[inline(never)]
    fn binary_values(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> Result<Value, Error> {
        ops::binary(op, left, right, &mut self.fuel).map_err(|error| error.at(span))
    }

    #[inline(never)]
    fn chain(&mut self, chain: &Chain, span: Span) -> Result<Value, Error> {
        let mut left = self.eval(&chain.first)?;
        for (op, operand) in &chain.rest {
            let right = self.eval(operand)?;
            left = self.binary_values(*op, &left, &right, span)?;
        }
        Ok(left)
    }

    #[inline]
    fn compare(&mut self, compare: &Compare, span: Span) -> Result<bool, Error> {
        match quick::compare(self, compare) {
            Some(holds) => Ok(holds),
            None => self.compare_general(compare, span),
        }
    }

    #[inline(never)]
    fn compare_general(&mut self, compare: &Compare, span: Span) -> Result<bool, Error> {
        let left = self.eval(&compare.left)?;
        let right = self.eval(&compare.right)?;
        self.compare_values(compare.op, &left, &right).map_err(|error| error.at(span))
    }

    #[inline(never)]
    fn compare_values(&mut self, op: CompareOp, left: &Value, right: &Value) -> Result<bool, Error> {
        match op {
            CompareOp::Eq => ops::equal(left, right, &mut self.fuel),
            CompareOp::Ne => Ok(!ops::equal(left, right, &mut self.fuel)?),
            CompareOp::Is => Ok(left.is(right)),
            CompareOp::IsNot => Ok(!left.is(right)),
            CompareOp::In => self.contains(right, left),
            CompareOp::NotIn => Ok(!self.contains(right, left)?),
            _ => ops::order(op, left, right, &mut self.fuel),
        }
    }

    pub(crate) fn contains(&mut self, container: &Value, item: &Value) -> Result<bool, Error> {
        if let Some(found) = ops::contains(container, item, &mut self.fuel)? {
            return Ok(found);
        }
        let mut iter = Iter::over(container)?;
        while let Some(candidate) = self.next(&mut iter)? {
            self.fuel.spend(1)?;
            if candidate.is(item) || ops::equal(&candidate, item, &mut self.fuel)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an expression holds, without making a value of it when that can be avoided.
    #[inline]
    fn condition(&mut self, expr: &Expr) -> Result<bool, Error> {
        match &expr.kind {
            ExprForm::Compare(compare) => self.compare(compare, expr.span),
            ExprForm::Not(value) => Ok(!self.condition(value)?),
            _ => Ok(ops::truth(&self.eval(expr)?)),
        }
    }

    #[inline(never)]
    fn junction(&mut self, items: &[Expr], stop: bool) -> Result<Value, Error> {
        let mut last = Value::None;
        for item in items {
            last = self.eval(item)?;
            if ops::truth(&last) == stop {
                break;
            }
        }
        Ok(last)
    }

    fn conditional(&mut self, mut conditional: &Conditional) -> Result<Value, Error> {
        loop {
            if self.condition(&conditional.test)? {
                return self.eval(&conditional.then);
            }
            match &conditional.other.kind {
                ExprForm::Conditional(next) => conditional = next,
                _ => return self.eval(&conditional.other),
            }
        }
    }

    #[inline(never)]
    fn attribute(&mut self, attribute: &Attribute, span: Span) -> Result<Value, Error> {
        let value = self.eval(&attribute.value)?;
        self.attribute_of(&value, &attribute.name).map_err(|error| error.at(span))
    }

    /// `value.name`: a dict's key first, then what the type offers.
    pub(crate) fn attribute_of(&mut self, value: &Value, name: &Name) -> Result<Value, Error> {
        if let Value::Dict(dict) = value
            && let Some(found) = dict.get_hashed(&TextKey::with_hash(&name.text, name.hash))
        {
            return Ok(found);
        }
        if let Value::Object(object) = value
            && let ObjectData::Struct(fields) = object.data()
            && let Some(found) = fields.get(&*name.text)
        {
            return Ok(found.clone());
        }
        if let Some(found) = crate::builtins::property(value, &name.text) {
            return Ok(found);
        }
        let row = name.method;
        if let Value::Type(kind) = value
            && let Some(method) = row.and_then(|row| crate::builtins::method_of(*kind, row))
        {
            return Ok(Object::new(ObjectData::Unbound(*kind, method)));
        }
        match row.and_then(|row| crate::builtins::method_of(Type::of(value), row)) {
            Some(method) => Ok(Object::new(ObjectData::Method(value.clone(), method))),
            None => Err(no_attribute(value, &name.text)),
        }
    }
}

#[cold]
pub(crate) fn no_attribute(value: &Value, name: &str) -> Error {
    let kind = value.type_name();
    let message = match value {
        Value::Type(class) => format!("type object '{}' has no attribute '{name}'", class.name()),
        _ => format!("'{kind}' object has no attribute '{name}'"),
    };
    let error = Error::new(ErrorKind::Attribute, message);
    if matches!(name, "len" | "length" | "size") && ops::length(value).is_ok() {
        return error.with_hint("use len(...)");
    }
    let close = match value {
        Value::Dict(dict) => {
            let map = dict.snapshot();
            let keys = map.keys().filter_map(|key| key.value.as_str()).take(1_000);
            nearest(name, keys.chain(crate::builtins::method_names(Type::DICT))).map(str::to_owned)
        }
        _ => nearest(name, crate::builtins::method_names(Type::of(value))).map(str::to_owned),
    };
    match close {
        Some(close) => error.with_hint(format!("did you mean `{close}`?")),
        None => error,
    }
}

/// A view of a dict as a value.
pub(crate) fn view(kind: ViewKind, dict: &Dict) -> Value {
    Object::new(ObjectData::View(kind, dict.clone()))
}
