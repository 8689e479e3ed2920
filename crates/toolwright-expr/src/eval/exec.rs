//! Statements of scripts, run one after the other until something returns, breaks or raises.

use std::sync::Mutex;

use super::Eval;
use crate::ast::{AssignTarget, Code, SlotKind, Stmt, StmtKind};
use crate::error::{Error, ErrorKind};
use crate::iter::Iter;
use crate::ops;
use crate::types::Type;
use crate::value::{Dict, DictMap, Object, ObjectData, Value};

/// How a statement ended.
pub(super) enum ControlFlow {
    Next,
    Break,
    Continue,
    Return(Value),
}

impl Eval<'_> {
    /// Runs a whole script; its result is the variable `result`, else what `run()` returns.
    pub(crate) fn script(&mut self, code: &Code, statements: &[Stmt]) -> Result<Value, Error> {
        self.prepare_script(code)?;
        self.block(statements)?;
        if let Some(result) = self.variable("result") {
            return Ok(result);
        }
        match self.variable("run") {
            Some(run) if run.is_callable() => self.call_with(&run, &[]),
            _ => Err(Error::runtime("Script must either define a 'result' variable or a 'run()' function.")),
        }
    }

    /// Copies every variable the script names, so that it cannot change the caller's data.
    fn prepare_script(&mut self, code: &Code) -> Result<(), Error> {
        for (index, info) in code.slots.iter().enumerate() {
            let SlotKind::Global(builtin) = &info.kind else { continue };
            let value = match self.scope.get(&info.name) {
                Some(value) => self.plain_copy(&value)?,
                None => builtin.clone().unwrap_or(Value::Unbound),
            };
            if let Some(place) = self.frame.get_mut(index) {
                *place = value;
            }
        }
        for slot in &code.cells {
            if let Some(place) = self.frame.get_mut(*slot as usize) {
                let value = std::mem::replace(place, Value::Unbound);
                *place = Object::new(ObjectData::Cell(Mutex::new(value)));
            }
        }
        self.lazy = false;
        Ok(())
    }

    /// A deep copy as scripts see data: sets and tuples become lists, functions stay what they are.
    fn plain_copy(&mut self, value: &Value) -> Result<Value, Error> {
        self.fuel.spend(1)?;
        self.fuel.enter()?;
        let copy = match value {
            Value::List(list) => self.copied(list.snapshot().iter())?,
            Value::Tuple(items) => self.copied(items.iter())?,
            Value::Set(set) => self.copied(crate::iter::set_order(&set.snapshot()).iter())?,
            Value::Dict(dict) => {
                let map = dict.snapshot();
                self.fuel.allocate_many(map.len(), ops::DICT_ENTRY)?;
                let mut copy = DictMap::with_capacity_and_hasher(map.len(), crate::value::Prehashed);
                for (key, value) in map.iter() {
                    copy.insert(key.clone(), self.plain_copy(value)?);
                }
                Value::Dict(Dict::new(copy))
            }
            other => other.clone(),
        };
        self.fuel.leave();
        Ok(copy)
    }

    fn copied<'v>(&mut self, items: impl Iterator<Item = &'v Value>) -> Result<Value, Error> {
        let mut copy = Vec::new();
        for item in items {
            let item = self.plain_copy(item)?;
            self.push(&mut copy, item)?;
        }
        Ok(Value::list(copy))
    }

    pub(super) fn function_body(&mut self, statements: &[Stmt]) -> Result<Value, Error> {
        match self.block(statements)? {
            ControlFlow::Return(value) => Ok(value),
            ControlFlow::Next | ControlFlow::Break | ControlFlow::Continue => Ok(Value::None),
        }
    }

    fn block(&mut self, statements: &[Stmt]) -> Result<ControlFlow, Error> {
        for statement in statements {
            match self.statement(statement)? {
                ControlFlow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(ControlFlow::Next)
    }

    fn statement(&mut self, statement: &Stmt) -> Result<ControlFlow, Error> {
        self.fuel.spend(statement.cost)?;
        match &statement.kind {
            StmtKind::Expr(expr) => {
                self.eval(expr)?;
            }
            StmtKind::Assign(targets, value) => {
                let value = self.eval(value)?;
                for target in targets {
                    self.store(target, value.clone()).map_err(|error| error.at(statement.span))?;
                }
            }
            StmtKind::Augment(target, op, value) => {
                let AssignTarget::Slot(slot) = target else {
                    return Err(Error::runtime("only names can be changed in place").at(statement.span));
                };
                let left = self.load(*slot, statement.span)?;
                let right = self.eval(value)?;
                let result = self.augment(*op, &left, &right).map_err(|error| error.at(statement.span))?;
                self.store_slot(*slot, result);
            }
            StmtKind::If(branches, other) => {
                for (test, body) in branches {
                    if self.condition(test)? {
                        return self.block(body);
                    }
                }
                return self.block(other);
            }
            StmtKind::For(target, iter, body, other) => return self.for_loop(target, iter, body, other),
            StmtKind::Def(function, target) => {
                let closure = self.closure(function)?;
                self.store(target, closure)?;
            }
            StmtKind::Return(None) => return Ok(ControlFlow::Return(Value::None)),
            StmtKind::Return(Some(value)) => return self.eval(value).map(ControlFlow::Return),
            StmtKind::Assert(test, message) => {
                if !self.condition(test)? {
                    let text = match message {
                        Some(message) => {
                            let value = self.eval(message)?;
                            crate::repr::text(&value, &mut self.fuel)?
                        }
                        None => String::new(),
                    };
                    return Err(Error::new(ErrorKind::Assertion, text).at(statement.span));
                }
            }
            StmtKind::Raise(value) => {
                let value = match value {
                    Some(value) => self.eval(value)?,
                    None => return Err(Error::runtime("No active exception to reraise").at(statement.span)),
                };
                return Err(self.raised(&value)?.at(statement.span));
            }
            StmtKind::Del(targets) => {
                for target in targets {
                    self.delete(target).map_err(|error| error.at(statement.span))?;
                }
            }
            StmtKind::Break => return Ok(ControlFlow::Break),
            StmtKind::Continue => return Ok(ControlFlow::Continue),
            StmtKind::Pass => {}
        }
        Ok(ControlFlow::Next)
    }

    /// `x op= y`: lists and sets change in place, everything else gets a new value.
    fn augment(&mut self, op: crate::ast::BinaryOp, left: &Value, right: &Value) -> Result<Value, Error> {
        if let (crate::ast::BinaryOp::Add, Value::List(list)) = (op, left) {
            self.guard_cycle(left, right)?;
            let items = self.collect_value(right)?;
            list.change(|all| all.extend(items));
            return Ok(left.clone());
        }
        ops::binary(op, left, right, &mut self.fuel)
    }

    fn for_loop(
        &mut self,
        target: &AssignTarget,
        iter: &crate::ast::Expr,
        body: &[Stmt],
        other: &[Stmt],
    ) -> Result<ControlFlow, Error> {
        let source = self.eval(iter)?;
        let mut items = Iter::over(&source).map_err(|error| error.at(iter.span))?;
        while let Some(item) = self.next(&mut items)? {
            self.fuel.spend(1)?;
            self.store(target, item).map_err(|error| error.at(iter.span))?;
            match self.block(body)? {
                ControlFlow::Next | ControlFlow::Continue => {}
                ControlFlow::Break => return Ok(ControlFlow::Next),
                ControlFlow::Return(value) => return Ok(ControlFlow::Return(value)),
            }
        }
        self.block(other)
    }

    fn raised(&mut self, value: &Value) -> Result<Error, Error> {
        let (class, text) = match value {
            Value::Type(class) if class.is_exception() => (*class, String::new()),
            Value::Object(object) => match object.data() {
                ObjectData::Exception(class, _) => (*class, crate::repr::text(value, &mut self.fuel)?),
                _ => return Err(not_an_exception()),
            },
            _ => return Err(not_an_exception()),
        };
        let kind = if class == Type::ASSERTION_ERROR { ErrorKind::Assertion } else { ErrorKind::Raised };
        Ok(Error::new(kind, text).with_class(class.name()))
    }

    fn delete(&mut self, target: &AssignTarget) -> Result<(), Error> {
        match target {
            AssignTarget::Slot(slot) => {
                self.load(*slot, crate::error::Span::default())?;
                self.store_slot(*slot, Value::Unbound);
                Ok(())
            }
            AssignTarget::Item(subscript, _) => {
                let container = self.eval(&subscript.value)?;
                let index = self.eval(&subscript.index)?;
                self.delete_item(&container, &index)
            }
            AssignTarget::Tuple(targets, _) => targets.iter().try_for_each(|target| self.delete(target)),
            AssignTarget::Name(name, _) => Err(Error::runtime(format!("name '{name}' was never resolved"))),
        }
    }
}

#[cold]
fn not_an_exception() -> Error {
    Error::type_("exceptions must derive from BaseException")
}
