//! The rarer values: functions, iterators, views, structs, exceptions, complex numbers.

use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;

use super::Value;
use super::dict::{Dict, DictMap};
use super::release::dismantle;
use crate::builtins::Method;
use crate::eval::{Closure, Generator};
use crate::host::HostFunction;
use crate::iter::Iter;
use crate::types::Type;

/// Which part of a dict a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewKind {
    Keys,
    Values,
    Items,
}

/// A rarer value: see [`Value::Object`].
#[derive(Clone)]
pub struct Object(pub(super) Arc<ObjectData>);

pub(crate) enum ObjectData {
    Complex {
        re: f64,
        im: f64,
    },
    Slice([Value; 3]),
    View(ViewKind, Dict),
    Iter(Type, Mutex<Iter>),
    Generator(Generator),
    Closure(Closure),
    Method(Value, &'static Method),
    Unbound(Type, &'static Method),
    Struct(IndexMap<Arc<str>, Value>),
    Exception(Type, Vec<Value>),
    /// A value to be shown as YAML, with the number of lines a text may have.
    Yaml(Value, Option<i64>),
    Host(Box<dyn HostFunction>),
    Cell(Mutex<Value>),
}

impl Object {
    #[expect(clippy::new_ret_no_self, reason = "objects are only ever used wrapped in a Value")]
    pub(crate) fn new(data: ObjectData) -> Value {
        Value::Object(Object(Arc::new(data)))
    }

    pub(crate) fn data(&self) -> &ObjectData {
        &self.0
    }
}

impl Drop for ObjectData {
    fn drop(&mut self) {
        dismantle(self.take());
    }
}

impl ObjectData {
    pub(super) fn take(&mut self) -> Vec<Value> {
        match self {
            ObjectData::Slice(parts) => parts.iter_mut().map(unbind).collect(),
            ObjectData::Method(receiver, _) | ObjectData::Yaml(receiver, _) => vec![unbind(receiver)],
            ObjectData::Struct(fields) => std::mem::take(fields).into_values().collect(),
            ObjectData::Exception(_, args) => std::mem::take(args),
            ObjectData::Cell(cell) => vec![unbind(cell.get_mut().unwrap_or_else(PoisonError::into_inner))],
            ObjectData::Closure(closure) => closure.take_values(),
            ObjectData::Generator(generator) => generator.take_values(),
            ObjectData::Iter(_, iter) => {
                let mut values = Vec::new();
                iter.get_mut().unwrap_or_else(PoisonError::into_inner).take_values(&mut values);
                values
            }
            ObjectData::View(_, dict) => {
                vec![Value::Dict(std::mem::replace(dict, Dict::new(DictMap::default())))]
            }
            ObjectData::Complex { .. } | ObjectData::Unbound(..) | ObjectData::Host(_) => Vec::new(),
        }
    }
}

fn unbind(slot: &mut Value) -> Value {
    std::mem::replace(slot, Value::Unbound)
}
