//! Walks the tree. Straight-line code is paid for when it is entered, loops by the round, calls by the call,
//! so that no step of the walk has to look at the meter. Calls, loops and statements have a file each.

mod call;
mod exec;
mod loops;
mod quick;

pub(crate) use call::{Args, Closure};
pub(crate) use loops::Generator;
pub(crate) use quick::alone;

use std::ops::Deref;
use std::sync::Arc;

use compact_str::CompactString;
use smallvec::SmallVec;

use self::quick::{Number, Numbers};
use crate::ast::{
    Attribute, Binary, BinaryOp, Chain, Code, Compare, CompareOp, Conditional, DictItem, Expr, FPart, Item,
    Kind, Name, SlotKind, Target,
};
use crate::error::{Error, ErrorKind, Span, nearest};
use crate::fuel::{Fuel, Limits};
use crate::host::Scope;
use crate::iter::Iter;
use crate::ops;
use crate::ops::sequence::ITEM;
use crate::types::Type;
use crate::value::{Dict, DictMap, KeySet, Object, ObjectData, Set, TextKey, Value, ViewKind, lock};

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
    pub(crate) fn new(code: &'a Code, scope: &'a dyn Scope, limits: &'a Limits) -> Self {
        Self::with_fuel(code, scope, Fuel::new(limits))
    }

    /// An evaluation that goes on with what others have left.
    pub(crate) fn with_fuel(code: &'a Code, scope: &'a dyn Scope, fuel: Fuel<'a>) -> Self {
        Eval { fuel, scope, code: CodeRef::Lent(code), frame: frame_of(code), lazy: true }
    }

    pub(crate) fn scope(&self) -> &'a dyn Scope {
        self.scope
    }

    /// The value of an expression.
    pub(crate) fn eval(&mut self, expr: &Expr) -> Result<Value, Error> {
        match &expr.kind {
            Kind::Const(value) => Ok(value.clone()),
            Kind::Slot(slot) => match self.frame.get(*slot as usize) {
                Some(Value::Int(number)) => Ok(Value::Int(*number)),
                _ => self.load(*slot, expr.span),
            },
            Kind::Binary(binary) => self.binary(binary, expr.span),
            Kind::Compare(compare) => self.compare(compare, expr.span).map(Value::Bool),
            Kind::Not(value) => Ok(Value::Bool(!self.condition(value)?)),
            Kind::And(items) => self.junction(items, false),
            Kind::Or(items) => self.junction(items, true),
            Kind::Conditional(conditional) => self.conditional(conditional),
            Kind::Attribute(attribute) => self.attribute(attribute, expr.span),
            Kind::Subscript(subscript) => {
                let value = self.eval(&subscript.value)?;
                let index = self.eval(&subscript.index)?;
                ops::sequence::subscript(&value, &index, &mut self.fuel).map_err(|error| error.at(expr.span))
            }
            Kind::Item(item) => self.item(item, expr.span),
            Kind::Call(call) => self.call(call, expr.span),
            Kind::FString(parts) => self.fstring(parts).map_err(|error| error.at(expr.span)),
            Kind::ListComp(comprehension) => self.list_comprehension(comprehension),
            _ => self.eval_rare(expr),
        }
    }

    /// The kinds that are met less often, kept apart so that `eval` itself needs little stack.
    #[inline(never)]
    fn eval_rare(&mut self, expr: &Expr) -> Result<Value, Error> {
        match &expr.kind {
            Kind::List(items) => Ok(Value::list(self.items(items)?)),
            Kind::Tuple(items) => Ok(Value::tuple(self.items(items)?)),
            Kind::Set(items) => self.set(items),
            Kind::Dict(items) => self.dict(items),
            Kind::Chain(chain) => self.chain(chain, expr.span),
            Kind::Compares(compares) => {
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
            Kind::Unary(op, operand) => {
                let value = self.eval(operand)?;
                ops::unary(*op, &value, &mut self.fuel).map_err(|error| error.at(expr.span))
            }
            Kind::Slice(parts) => {
                let mut values = [Value::None, Value::None, Value::None];
                for (slot, part) in values.iter_mut().zip(parts.iter()) {
                    if let Some(part) = part {
                        *slot = self.eval(part)?;
                    }
                }
                Ok(ops::sequence::slice_value(values))
            }
            Kind::Starred(value) => Err(Error::syntax("cannot use starred expression here", value.span)),
            Kind::ListComp(comprehension) => self.list_comprehension(comprehension),
            Kind::SetComp(comprehension) => self.set_comprehension(comprehension),
            Kind::DictComp(comprehension) => self.dict_comprehension(comprehension),
            Kind::Generator(comprehension) => {
                self.generator(comprehension).map_err(|error| error.at(expr.span))
            }
            Kind::Lambda(function) => self.closure(function),
            Kind::Name(name) => {
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

    /// Gives a variable its value.
    #[inline]
    fn store_slot(&mut self, slot: u32, value: Value) {
        if let Some(place) = self.frame.get_mut(slot as usize) {
            if let Value::Object(object) = place
                && let ObjectData::Cell(cell) = object.data()
            {
                *lock(cell) = value;
                return;
            }
            *place = value;
        }
    }

    /// Binds what a loop or assignment names.
    #[inline]
    fn store(&mut self, target: &Target, value: Value) -> Result<(), Error> {
        match target {
            Target::Slot(slot) => {
                self.store_slot(*slot, value);
                Ok(())
            }
            _ => self.store_rare(target, value),
        }
    }

    #[inline(never)]
    fn store_rare(&mut self, target: &Target, value: Value) -> Result<(), Error> {
        match target {
            Target::Slot(_) => self.store(target, value),
            Target::Tuple(targets, star) => self.unpack(targets, *star, value),
            Target::Item(subscript, span) => {
                let container = self.eval(&subscript.value)?;
                let index = self.eval(&subscript.index)?;
                self.set_item(&container, &index, value).map_err(|error| error.at(*span))
            }
            Target::Name(name, span) => {
                Err(Error::runtime(format!("name '{name}' was never resolved")).at(*span))
            }
        }
    }

    fn unpack(&mut self, targets: &[Target], star: Option<usize>, value: Value) -> Result<(), Error> {
        let iter = Iter::over(&value)
            .map_err(|_| Error::type_(format!("cannot unpack non-iterable {} object", value.type_name())))?;
        let wanted = targets.len();
        let limit = if star.is_some() { usize::MAX } else { wanted + 1 };
        let mut items = self.collect_up_to(iter, limit)?;
        let needed = wanted - usize::from(star.is_some());
        if items.len() < needed {
            let at_least = if star.is_some() { "at least " } else { "" };
            return Err(Error::value(format!(
                "not enough values to unpack (expected {at_least}{needed}, got {})",
                items.len()
            )));
        }
        let Some(star) = star else {
            if items.len() > wanted {
                return Err(Error::value(format!("too many values to unpack (expected {wanted})")));
            }
            for (target, item) in targets.iter().zip(items) {
                self.store(target, item)?;
            }
            return Ok(());
        };
        let after = wanted - star - 1;
        let tail = items.split_off(items.len() - after);
        let middle = items.split_off(star);
        let values = items.into_iter().chain([Value::list(middle)]).chain(tail);
        for (target, item) in targets.iter().zip(values) {
            self.store(target, item)?;
        }
        Ok(())
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

    /// A variable that is no integer, or one of the scope met for the first time, as a machine number.
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
    fn item(&mut self, item: &Item, span: Span) -> Result<Value, Error> {
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
            Kind::Compare(compare) => self.compare(compare, expr.span),
            Kind::Not(value) => Ok(!self.condition(value)?),
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
                Kind::Conditional(next) => conditional = next,
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

    #[inline(never)]
    fn items(&mut self, items: &[Expr]) -> Result<Vec<Value>, Error> {
        self.fuel.allocate_many(items.len() + 3, ITEM)?;
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match &item.kind {
                Kind::Starred(inner) => {
                    let value = self.eval(inner)?;
                    let iter = Iter::over(&value).map_err(|_| {
                        Error::type_(format!("Value after * must be an iterable, not {}", value.type_name()))
                            .at(item.span)
                    })?;
                    values.append(&mut self.collect(iter)?);
                }
                _ => values.push(self.eval(item)?),
            }
        }
        Ok(values)
    }

    #[inline(never)]
    fn set(&mut self, items: &[Expr]) -> Result<Value, Error> {
        let values = self.items(items)?;
        self.fuel.allocate_many(values.len() + 1, ops::SET_ENTRY)?;
        let mut set = KeySet::default();
        for value in values {
            set.insert(ops::key(&value, &mut self.fuel)?);
        }
        Ok(Value::Set(Set::new(set, false)))
    }

    #[inline(never)]
    fn dict(&mut self, items: &[DictItem]) -> Result<Value, Error> {
        self.fuel.allocate_many(items.len() + 1, ops::DICT_ENTRY)?;
        let mut map = DictMap::with_capacity_and_hasher(items.len(), crate::value::Prehashed);
        // Everything is evaluated before the first key is hashed, as in Python.
        let mut pairs: SmallVec<[(Value, Value, Span); 4]> = SmallVec::new();
        for item in items {
            match item {
                DictItem::Pair(key, value) => {
                    let span = key.span;
                    pairs.push((self.eval(key)?, self.eval(value)?, span));
                }
                DictItem::Spread(source) => {
                    self.insert_all(&mut map, &mut pairs)?;
                    let value = self.eval(source)?;
                    let Value::Dict(dict) = &value else {
                        return Err(Error::type_(format!("'{}' object is not a mapping", value.type_name()))
                            .at(source.span));
                    };
                    let other = dict.snapshot();
                    self.fuel.allocate_many(other.len(), ops::DICT_ENTRY)?;
                    map.extend(other.iter().map(|(key, value)| (key.clone(), value.clone())));
                }
            }
        }
        self.insert_all(&mut map, &mut pairs)?;
        Ok(Value::Dict(Dict::new(map)))
    }

    fn insert_all(
        &mut self,
        map: &mut DictMap,
        pairs: &mut SmallVec<[(Value, Value, Span); 4]>,
    ) -> Result<(), Error> {
        for (key, value, span) in pairs.drain(..) {
            map.insert(ops::key(&key, &mut self.fuel).map_err(|error| error.at(span))?, value);
        }
        Ok(())
    }

    #[inline(never)]
    fn fstring(&mut self, parts: &[FPart]) -> Result<Value, Error> {
        let mut out = CompactString::default();
        self.fstring_into(parts, &mut out)?;
        Ok(Value::str(out))
    }

    fn fstring_into(&mut self, parts: &[FPart], out: &mut CompactString) -> Result<(), Error> {
        self.fuel.allocate(0)?;
        for part in parts {
            match part {
                FPart::Text(text) => {
                    self.fuel.allocate(text.len())?;
                    out.push_str(text);
                }
                FPart::Field(field) => {
                    let mut value = self.eval(&field.value)?;
                    match field.conversion {
                        Some('r') => value = Value::str(crate::repr::repr(&value, &mut self.fuel)?),
                        Some('a') => value = Value::str(crate::repr::ascii(&value, &mut self.fuel)?),
                        Some(_) => value = Value::str(crate::repr::text(&value, &mut self.fuel)?),
                        None => {}
                    }
                    if field.spec.is_empty() {
                        crate::repr::append(out, &value, &mut self.fuel)?;
                        continue;
                    }
                    let mut spec = CompactString::default();
                    self.fstring_into(&field.spec, &mut spec)?;
                    out.push_str(&crate::format::value(&value, &spec, &mut self.fuel)?);
                }
            }
        }
        Ok(())
    }

    /// `container[index] = value`.
    fn set_item(&mut self, container: &Value, index: &Value, value: Value) -> Result<(), Error> {
        self.guard_cycle(container, &value)?;
        match container {
            Value::Dict(dict) => {
                let key = ops::key(index, &mut self.fuel)?;
                self.fuel.allocate(ops::DICT_ENTRY)?;
                dict.change(|map| map.insert(key, value));
                Ok(())
            }
            Value::List(list) => {
                let at = match index {
                    Value::Int(_) | Value::Bool(_) => ops::index(index)?,
                    _ => {
                        return Err(Error::type_(format!(
                            "list indices must be integers or slices, not {}",
                            index.type_name()
                        )));
                    }
                };
                let stored = list.change(|items| {
                    let at = ops::sequence::position(at, items.len())?;
                    items.get_mut(at).map(|place| *place = value)
                });
                stored.ok_or_else(|| Error::index("list assignment index out of range"))
            }
            _ => Err(Error::type_(format!(
                "'{}' object does not support item assignment",
                container.type_name()
            ))),
        }
    }

    /// `del container[index]`.
    fn delete_item(&mut self, container: &Value, index: &Value) -> Result<(), Error> {
        match container {
            Value::Dict(dict) => {
                let key = ops::key(index, &mut self.fuel)?;
                self.fuel.spend(dict.len() as u64 >> 4)?;
                match dict.change(|map| map.shift_remove(&key)) {
                    Some(_) => Ok(()),
                    None => Err(ops::sequence::key_error(index, &mut self.fuel)),
                }
            }
            Value::List(list) => {
                let at = ops::index(index)?;
                let removed =
                    list.change(|items| ops::sequence::position(at, items.len()).map(|at| items.remove(at)));
                removed.map(drop).ok_or_else(|| Error::index("list assignment index out of range"))
            }
            _ => {
                Err(Error::type_(format!("'{}' object doesn't support item deletion", container.type_name())))
            }
        }
    }

    /// Plain data is a tree: a list or dict must not come to hold itself, or nothing could ever free it.
    pub(crate) fn guard_cycle(&mut self, container: &Value, value: &Value) -> Result<(), Error> {
        let mut pending = vec![value.clone()];
        while let Some(next) = pending.pop() {
            match &next {
                Value::List(list) => {
                    if next.is(container) {
                        return Err(holds_itself());
                    }
                    let items = list.snapshot();
                    self.fuel.spend(items.len() as u64 / 4 + 1)?;
                    pending.extend(items.iter().filter(|item| may_hold(item)).cloned());
                }
                Value::Dict(dict) => {
                    if next.is(container) {
                        return Err(holds_itself());
                    }
                    let map = dict.snapshot();
                    self.fuel.spend(map.len() as u64 / 2 + 1)?;
                    pending.extend(map.values().filter(|item| may_hold(item)).cloned());
                }
                Value::Tuple(items) => {
                    self.fuel.spend(items.len() as u64 / 4 + 1)?;
                    pending.extend(items.iter().filter(|item| may_hold(item)).cloned());
                }
                Value::Object(object) => match object.data() {
                    ObjectData::Struct(fields) => {
                        self.fuel.spend(fields.len() as u64 + 1)?;
                        pending.extend(fields.values().filter(|item| may_hold(item)).cloned());
                    }
                    ObjectData::View(_, dict) => pending.push(Value::Dict(dict.clone())),
                    ObjectData::Method(receiver, _) => pending.push(receiver.clone()),
                    ObjectData::Exception(_, args) => pending.extend(args.iter().cloned()),
                    ObjectData::Iter(..)
                    | ObjectData::Generator(_)
                    | ObjectData::Closure(_)
                    | ObjectData::Cell(_) => {
                        return Err(Error::type_(format!(
                            "a {} cannot be kept in a list or dict that changes",
                            next.type_name()
                        ))
                        .with_hint("turn it into a list first: list(...)"));
                    }
                    ObjectData::Complex { .. }
                    | ObjectData::Slice(_)
                    | ObjectData::Unbound(..)
                    | ObjectData::Yaml(..)
                    | ObjectData::Host(_) => {}
                },
                _ => {}
            }
        }
        Ok(())
    }
}

fn may_hold(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Dict(_) | Value::Tuple(_) | Value::Object(_))
}

#[cold]
fn holds_itself() -> Error {
    Error::value("a list or dict cannot hold itself")
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
