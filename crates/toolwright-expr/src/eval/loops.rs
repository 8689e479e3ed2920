//! Iteration: comprehensions, generators, and taking the next value from anything that has one.

use std::sync::{Arc, Mutex};

use super::quick::Chain;
use super::{CodeRef, Eval, Frame, frame_of};
use crate::ast::{AssignTarget, Body, Clause, Code, Comprehension, Expr};
use crate::error::Error;
use crate::iter::{Iter, Step};
use crate::ops::sequence::ITEM;
use crate::ops::{self, DICT_ENTRY, SET_ENTRY};
use crate::types::Type;
use crate::value::{Dict, DictMap, KeySet, Object, ObjectData, Set, Value, lock};

/// What a small object counts as when a list keeps it.
const OBJECT: usize = 96;

/// Iterators may be stacked (`map` of `zip` of ...) this deep.
const MAX_STACKED: usize = 40;

/// A generator expression, paused between two values.
pub(crate) struct Generator {
    state: Mutex<GeneratorState>,
}

/// `Running` stands in while the generator runs, so that it cannot be entered twice.
enum GeneratorState {
    Paused(Box<Paused>),
    Running,
    Finished,
}

struct Paused {
    code: Arc<Code>,
    frame: Frame,
    /// One iterator for each `for` that has begun.
    iters: Vec<Iter>,
}

impl Generator {
    pub(crate) fn take_values(&mut self) -> Vec<Value> {
        let mut values = Vec::new();
        if let GeneratorState::Paused(mut paused) =
            std::mem::replace(&mut *lock(&self.state), GeneratorState::Finished)
        {
            values.extend(paused.frame.drain(..));
            paused.iters.iter_mut().for_each(|iter| iter.take_values(&mut values));
        }
        values
    }
}

fn finished_list(sink: Sink) -> Result<Value, Error> {
    match sink {
        Sink::List(items) => Ok(Value::list(items)),
        Sink::Set(_) | Sink::Dict(_) => Err(Error::runtime("a list comprehension made something else")),
    }
}

/// Where a comprehension puts its elements.
enum Sink {
    List(Vec<Value>),
    Set(KeySet),
    Dict(DictMap),
}

impl Eval<'_> {
    pub(super) fn list_comprehension(&mut self, comprehension: &Comprehension) -> Result<Value, Error> {
        self.fuel.allocate(64)?;
        if let [clause] = &*comprehension.clauses
            && clause.pure
            && let AssignTarget::Slot(slot) = clause.target
            && comprehension.cells.is_empty()
        {
            let source = self.eval(&clause.iter)?;
            if let Value::List(list) = &source {
                return self
                    .list_over(&comprehension.element, clause, slot, &list.snapshot())
                    .map(Value::list);
            }
            let mut sink = Sink::List(Vec::new());
            self.walk(comprehension, &comprehension.clauses, &source, &mut sink)?;
            return finished_list(sink);
        }
        let mut sink = Sink::List(Vec::new());
        self.comprehension(comprehension, &mut sink)?;
        finished_list(sink)
    }

    /// The common case, one loop over a list nothing can change meanwhile, without any indirection.
    fn list_over(
        &mut self,
        element: &Expr,
        clause: &Clause,
        slot: u32,
        items: &[Value],
    ) -> Result<Vec<Value>, Error> {
        // Without conditions the length is known; with them a guess saves growing in small steps.
        let room = if clause.conditions.is_empty() { items.len() } else { items.len().min(64) };
        self.fuel.allocate_many(room, ITEM)?;
        let mut out = Vec::with_capacity(room);
        let done = self.numbers_over(element, clause, slot, items, &mut out)?;
        'rounds: for item in items.iter().skip(done) {
            self.fuel.spend(clause.cost)?;
            if let Some(place) = self.frame.get_mut(slot as usize) {
                *place = item.clone();
            }
            for condition in &clause.conditions {
                if !self.condition(condition)? {
                    continue 'rounds;
                }
            }
            let value = self.eval(element)?;
            self.push(&mut out, value)?;
        }
        Ok(out)
    }

    /// The rounds of a loop that only counts, up to the first that does not. Says how many were done.
    fn numbers_over(
        &mut self,
        element: &Expr,
        clause: &Clause,
        slot: u32,
        items: &[Value],
        out: &mut Vec<Value>,
    ) -> Result<usize, Error> {
        let condition = match &*clause.conditions {
            [] => None,
            [only] => match Chain::condition(self, slot, only) {
                Some(chain) => Some(chain),
                None => return Ok(0),
            },
            _ => return Ok(0),
        };
        let Some(element) = Chain::element(self, slot, element) else { return Ok(0) };
        let mut done = 0;
        // Rounds are paid for a few at a time.
        for several in items.chunks(32) {
            self.fuel.spend(clause.cost * several.len() as u64)?;
            for item in several {
                let Value::Int(item) = item else { return Ok(done) };
                let wanted = match &condition {
                    None => true,
                    Some(chain) => match chain.value(*item) {
                        Some(truth) => truth != 0,
                        None => return Ok(done),
                    },
                };
                if wanted {
                    let Some(value) = element.value(*item) else { return Ok(done) };
                    if out.len() == out.capacity() {
                        self.grow(out)?;
                    }
                    out.push(Value::Int(value));
                }
                done += 1;
            }
        }
        Ok(done)
    }

    pub(super) fn set_comprehension(&mut self, comprehension: &Comprehension) -> Result<Value, Error> {
        self.fuel.allocate(128)?;
        let mut sink = Sink::Set(KeySet::default());
        self.comprehension(comprehension, &mut sink)?;
        match sink {
            Sink::Set(items) => Ok(Value::Set(Set::new(items, false))),
            Sink::List(_) | Sink::Dict(_) => Err(Error::runtime("a set comprehension made something else")),
        }
    }

    pub(super) fn dict_comprehension(&mut self, comprehension: &Comprehension) -> Result<Value, Error> {
        self.fuel.allocate(128)?;
        let mut sink = Sink::Dict(DictMap::default());
        self.comprehension(comprehension, &mut sink)?;
        match sink {
            Sink::Dict(map) => Ok(Value::Dict(Dict::new(map))),
            Sink::List(_) | Sink::Set(_) => Err(Error::runtime("a dict comprehension made something else")),
        }
    }

    fn comprehension(&mut self, comprehension: &Comprehension, sink: &mut Sink) -> Result<(), Error> {
        let Some(first) = comprehension.clauses.first() else { return Ok(()) };
        let source = self.eval(&first.iter)?;
        for slot in &comprehension.cells {
            if let Some(place) = self.frame.get_mut(*slot as usize) {
                *place = Object::new(ObjectData::Cell(Mutex::new(Value::Unbound)));
            }
        }
        self.walk(comprehension, &comprehension.clauses, &source, sink)
    }

    /// Runs the first of `clauses`, and the others inside it.
    fn walk(
        &mut self,
        comprehension: &Comprehension,
        clauses: &[Clause],
        source: &Value,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let Some((clause, rest)) = clauses.split_first() else { return Ok(()) };
        if let Value::List(list) = source
            && clause.pure
        {
            for item in list.snapshot().iter() {
                self.round(comprehension, clause, rest, item.clone(), sink)?;
            }
            return Ok(());
        }
        let mut iter = Iter::over(source).map_err(|error| error.at(clause.iter.span))?;
        while let Some(item) = self.next(&mut iter)? {
            self.round(comprehension, clause, rest, item, sink)?;
        }
        Ok(())
    }

    #[inline]
    fn round(
        &mut self,
        comprehension: &Comprehension,
        clause: &Clause,
        rest: &[Clause],
        item: Value,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        self.fuel.spend(clause.cost)?;
        self.store(&clause.target, item).map_err(|error| error.at(clause.iter.span))?;
        for condition in &clause.conditions {
            if !self.condition(condition)? {
                return Ok(());
            }
        }
        match rest.first() {
            None => self.emit(comprehension, sink),
            Some(next) => {
                let source = self.eval(&next.iter)?;
                self.walk(comprehension, rest, &source, sink)
            }
        }
    }

    #[inline]
    fn emit(&mut self, comprehension: &Comprehension, sink: &mut Sink) -> Result<(), Error> {
        let element = self.eval(&comprehension.element)?;
        match sink {
            Sink::List(items) => self.push(items, element),
            Sink::Set(items) => {
                self.fuel.allocate(SET_ENTRY)?;
                items.insert(ops::key(&element, &mut self.fuel)?);
                Ok(())
            }
            Sink::Dict(map) => {
                let value = match &comprehension.value {
                    Some(value) => self.eval(value)?,
                    None => Value::None,
                };
                self.fuel.allocate(DICT_ENTRY)?;
                map.insert(ops::key(&element, &mut self.fuel)?, value);
                Ok(())
            }
        }
    }

    /// Adds to a growing list, paying for room before it is made.
    #[inline(always)]
    pub(crate) fn push(&mut self, items: &mut Vec<Value>, item: Value) -> Result<(), Error> {
        if items.len() == items.capacity() {
            self.grow(items)?;
        }
        // Small objects are not paid for when they are made; once they are kept they count.
        match &item {
            Value::Object(_) | Value::Range(_) => self.fuel.allocate(OBJECT)?,
            Value::Str(text) if !text.is_ascii() && text.chars_len() == 1 => self.fuel.allocate(OBJECT)?,
            _ => {}
        }
        items.push(item);
        Ok(())
    }

    #[inline(never)]
    fn grow(&mut self, items: &mut Vec<Value>) -> Result<(), Error> {
        let more = items.capacity().max(8);
        self.fuel.allocate_many(more, ITEM)?;
        items.reserve_exact(more);
        Ok(())
    }

    /// Makes a generator; its first iterable is evaluated now, the rest when it runs.
    pub(super) fn generator(&mut self, comprehension: &Comprehension) -> Result<Value, Error> {
        let Some(code) = &comprehension.code else {
            return Err(Error::runtime("generator was never resolved"));
        };
        let source = self.eval(&comprehension.element)?;
        let first = Iter::over(&source)?;
        let mut frame = frame_of(code);
        for (slot, value) in self.captured(code) {
            if let Some(place) = frame.get_mut(slot as usize) {
                *place = value;
            }
        }
        for slot in &code.cells {
            if let Some(place) = frame.get_mut(*slot as usize) {
                *place = Object::new(ObjectData::Cell(Mutex::new(Value::Unbound)));
            }
        }
        self.fuel.allocate(256 + frame.len() * ITEM)?;
        let paused = Paused { code: Arc::clone(code), frame, iters: vec![first] };
        let state = Mutex::new(GeneratorState::Paused(Box::new(paused)));
        Ok(Object::new(ObjectData::Generator(Generator { state })))
    }

    /// The next value of an iterator.
    #[inline]
    pub(crate) fn next(&mut self, iter: &mut Iter) -> Result<Option<Value>, Error> {
        match iter.advance() {
            Ok(next) => Ok(next),
            Err(Step::Fail(error)) => Err(error),
            Err(Step::Call) => self.next_by_call(iter),
        }
    }

    #[inline(never)]
    fn next_by_call(&mut self, iter: &mut Iter) -> Result<Option<Value>, Error> {
        self.fuel.spend(5)?;
        self.fuel.enter()?;
        let result = self.next_inner(iter);
        self.fuel.leave();
        result
    }

    fn next_inner(&mut self, iter: &mut Iter) -> Result<Option<Value>, Error> {
        match iter {
            Iter::Shared(value) => self.next_shared(value),
            Iter::Zip(parts, strict) => self.next_zip(parts, *strict),
            Iter::Enumerate(inner, count) => {
                let Some(item) = self.next(inner)? else { return Ok(None) };
                let following =
                    ops::binary(crate::ast::BinaryOp::Add, count, &Value::Int(1), &mut self.fuel)?;
                let number = std::mem::replace(count, following);
                self.fuel.allocate(2 * ITEM)?;
                Ok(Some(Value::tuple(vec![number, item])))
            }
            Iter::Map(function, parts) => {
                let mut values = Vec::with_capacity(parts.len());
                for part in parts.iter_mut() {
                    match self.next(part)? {
                        Some(value) => values.push(value),
                        None => return Ok(None),
                    }
                }
                let function = function.clone();
                self.call_with(&function, &values).map(Some)
            }
            Iter::Filter(function, inner) => loop {
                let Some(item) = self.next(inner)? else { return Ok(None) };
                self.fuel.spend(1)?;
                let keep = match &*function {
                    Value::None => ops::truth(&item),
                    test => {
                        let test = test.clone();
                        ops::truth(&self.call_with(&test, std::slice::from_ref(&item))?)
                    }
                };
                if keep {
                    return Ok(Some(item));
                }
            },
            _ => match iter.advance() {
                Ok(next) => Ok(next),
                Err(Step::Fail(error)) => Err(error),
                Err(Step::Call) => Err(Error::runtime("this iterator cannot be advanced")),
            },
        }
    }

    fn next_zip(&mut self, parts: &mut [Iter], strict: bool) -> Result<Option<Value>, Error> {
        let mut values = Vec::with_capacity(parts.len());
        for index in 0..parts.len() {
            let Some(part) = parts.get_mut(index) else { break };
            match self.next(part)? {
                Some(value) => values.push(value),
                None if strict && index > 0 => {
                    return Err(Error::value(format!(
                        "zip() argument {} is shorter than argument{} {index}",
                        index + 1,
                        if index == 1 { "" } else { "s 1-" }
                    )));
                }
                None if strict => {
                    for (later, part) in parts.iter_mut().enumerate().skip(1) {
                        if self.next(part)?.is_some() {
                            return Err(Error::value(format!(
                                "zip() argument {} is longer than argument 1",
                                later + 1
                            )));
                        }
                    }
                    return Ok(None);
                }
                None => return Ok(None),
            }
        }
        if values.is_empty() {
            return Ok(None);
        }
        self.fuel.allocate_many(values.len(), ITEM)?;
        Ok(Some(Value::tuple(values)))
    }

    /// Advances an iterator or generator others may hold too. It is taken out meanwhile, so nothing is locked
    /// while code runs, and a generator that asks for itself finds it busy.
    fn next_shared(&mut self, value: &Value) -> Result<Option<Value>, Error> {
        let Value::Object(object) = value else { return Ok(None) };
        match object.data() {
            ObjectData::Iter(_, shared) => {
                let mut iter = std::mem::replace(&mut *lock(shared), Iter::Done);
                let result = self.next(&mut iter);
                *lock(shared) = iter;
                result
            }
            ObjectData::Generator(generator) => {
                let state = std::mem::replace(&mut *lock(&generator.state), GeneratorState::Running);
                match state {
                    GeneratorState::Running => Err(Error::value("generator already executing")),
                    GeneratorState::Finished => {
                        *lock(&generator.state) = GeneratorState::Finished;
                        Ok(None)
                    }
                    GeneratorState::Paused(mut paused) => {
                        let result = self.resume(&mut paused);
                        let done = !matches!(result, Ok(Some(_)));
                        *lock(&generator.state) =
                            if done { GeneratorState::Finished } else { GeneratorState::Paused(paused) };
                        result
                    }
                }
            }
            _ => Ok(None),
        }
    }

    fn resume(&mut self, paused: &mut Paused) -> Result<Option<Value>, Error> {
        let code = Arc::clone(&paused.code);
        let Body::Generator(comprehension) = &code.body else {
            return Err(Error::runtime("not a generator"));
        };
        self.fuel.enter_by(code.height + 2)?;
        std::mem::swap(&mut self.frame, &mut paused.frame);
        let outer_code = std::mem::replace(&mut self.code, CodeRef::Shared(Arc::clone(&code)));
        let outer_lazy = std::mem::replace(&mut self.lazy, false);
        let result = self.resume_loops(comprehension, &mut paused.iters);
        self.lazy = outer_lazy;
        self.code = outer_code;
        std::mem::swap(&mut self.frame, &mut paused.frame);
        self.fuel.leave_by(code.height + 2);
        result
    }

    fn resume_loops(
        &mut self,
        comprehension: &Comprehension,
        iters: &mut Vec<Iter>,
    ) -> Result<Option<Value>, Error> {
        'rounds: loop {
            let level = iters.len();
            let Some(iter) = iters.last_mut() else { return Ok(None) };
            let Some(item) = self.next(iter)? else {
                iters.pop();
                continue;
            };
            let Some(clause) = level.checked_sub(1).and_then(|level| comprehension.clauses.get(level)) else {
                return Ok(None);
            };
            self.fuel.spend(clause.cost)?;
            self.store(&clause.target, item).map_err(|error| error.at(clause.iter.span))?;
            for condition in &clause.conditions {
                if !self.condition(condition)? {
                    continue 'rounds;
                }
            }
            match comprehension.clauses.get(level) {
                None => return self.eval(&comprehension.element).map(Some),
                Some(next) => {
                    let source = self.eval(&next.iter)?;
                    iters.push(Iter::over(&source).map_err(|error| error.at(next.iter.span))?);
                }
            }
        }
    }

    /// All remaining values.
    pub(crate) fn collect(&mut self, iter: Iter) -> Result<Vec<Value>, Error> {
        self.collect_up_to(iter, usize::MAX)
    }

    pub(super) fn collect_up_to(&mut self, mut iter: Iter, most: usize) -> Result<Vec<Value>, Error> {
        match &iter {
            Iter::List(list, 0) if most == usize::MAX => {
                let items = list.snapshot();
                self.fuel.allocate_many(items.len(), ITEM)?;
                self.fuel.spend(items.len() as u64 / 4)?;
                return Ok((*items).clone());
            }
            Iter::Range(_, _, count) if most == usize::MAX => {
                let length = usize::try_from(*count).unwrap_or(usize::MAX);
                self.fuel.allocate_many(length, ITEM)?;
            }
            _ => {}
        }
        let mut items = Vec::new();
        while items.len() < most {
            let Some(item) = self.next(&mut iter)? else { break };
            self.fuel.spend(1)?;
            self.push(&mut items, item)?;
        }
        Ok(items)
    }

    /// All values of an iterable.
    pub(crate) fn collect_value(&mut self, value: &Value) -> Result<Vec<Value>, Error> {
        let iter = Iter::over(value)?;
        self.collect(iter)
    }

    /// A lazy iterator as a value; stacking them too deep is refused now rather than when they run.
    pub(crate) fn lazy_value(&mut self, iter: Iter, kind: Type) -> Result<Value, Error> {
        if iter.depth() > MAX_STACKED {
            return Err(Error::limited(
                crate::error::LimitKind::Depth,
                format!("more than {MAX_STACKED} iterators inside one another"),
            ));
        }
        self.fuel.allocate(256)?;
        Ok(iter.into_value(kind))
    }
}
