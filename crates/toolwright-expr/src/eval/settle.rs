//! Materialises iterators in values that leave a script or enter a host function, while their fuel can still
//! be charged.

use std::collections::HashMap;

use super::Eval;
use crate::error::Error;
use crate::ops::DICT_ENTRY;
use crate::ops::sequence::ITEM;
use crate::value::{Dict, Object, ObjectData, Value};

/// Values visited before, by address, and their results. Holding them keeps their addresses from being
/// reused.
type VisitedValues = HashMap<usize, (Value, Option<Value>)>;

/// How many places hold a value, itself or through the value around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holders {
    One,
    Many,
}

impl Eval<'_> {
    /// The value with each iterator in it replaced by a list of its items. Values without iterators are
    /// returned as they are; keys, members of sets and captured variables are not visited.
    pub(crate) fn settled(&mut self, value: Value) -> Result<Value, Error> {
        Ok(self.settle(&value, Holders::One, &mut VisitedValues::new())?.unwrap_or(value))
    }

    /// `None` when there is no iterator in the value. A value with many holders is visited once: a list that
    /// holds another one many times takes little memory, but visiting every path through it takes exponential
    /// time.
    fn settle(
        &mut self,
        value: &Value,
        holders: Holders,
        visited: &mut VisitedValues,
    ) -> Result<Option<Value>, Error> {
        if !holds_others(value) {
            return Ok(None);
        }
        // A value nested too deeply to be visited is refused later, when it is rendered.
        if self.fuel.enter().is_err() {
            return Ok(None);
        }
        let settled = if runs(value) {
            let items = self.collect_value(value)?;
            let settled = self.settle_items(&items, holders, visited)?;
            Some(Value::list(settled.unwrap_or(items)))
        } else {
            let holders = if value.is_shared() { Holders::Many } else { holders };
            self.settle_once(value, holders, visited)?
        };
        self.fuel.leave();
        Ok(settled)
    }

    fn settle_once(
        &mut self,
        value: &Value,
        holders: Holders,
        visited: &mut VisitedValues,
    ) -> Result<Option<Value>, Error> {
        if holders == Holders::One {
            return self.settle_parts(value, holders, visited);
        }
        if let Some((_, settled)) = visited.get(&value.address()) {
            return Ok(settled.clone());
        }
        let settled = self.settle_parts(value, holders, visited)?;
        // The memo table is no larger than the value itself, and dropped after this walk, so it costs a
        // constant.
        self.fuel.spend(2)?;
        visited.insert(value.address(), (value.clone(), settled.clone()));
        Ok(settled)
    }

    fn settle_parts(
        &mut self,
        value: &Value,
        holders: Holders,
        visited: &mut VisitedValues,
    ) -> Result<Option<Value>, Error> {
        Ok(match value {
            Value::List(list) => self.settle_items(&list.snapshot(), holders, visited)?.map(Value::list),
            Value::Tuple(items) => self.settle_items(items, holders, visited)?.map(Value::tuple),
            Value::Dict(dict) => self.settle_dict(dict, holders, visited)?.map(Value::Dict),
            Value::Object(object) => match object.data() {
                ObjectData::Struct(fields) => {
                    let values: Vec<Value> = fields.values().cloned().collect();
                    let settled = self.settle_items(&values, holders, visited)?;
                    settled.map(|values| {
                        Object::new(ObjectData::Struct(fields.keys().cloned().zip(values).collect()))
                    })
                }
                ObjectData::View(kind, dict) => self
                    .settle_dict(dict, holders, visited)?
                    .map(|dict| Object::new(ObjectData::View(*kind, dict))),
                _ => None,
            },
            _ => None,
        })
    }

    fn settle_dict(
        &mut self,
        dict: &Dict,
        holders: Holders,
        visited: &mut VisitedValues,
    ) -> Result<Option<Dict>, Error> {
        let map = dict.snapshot();
        self.fuel.spend(map.len() as u64 / 2 + 1)?;
        let mut copy = None;
        for (at, value) in map.values().enumerate() {
            let Some(settled) = self.settle(value, holders, visited)? else { continue };
            if copy.is_none() {
                self.fuel.allocate_many(map.len(), DICT_ENTRY)?;
            }
            let copy = copy.get_or_insert_with(|| (*map).clone());
            if let Some((_, place)) = copy.get_index_mut(at) {
                *place = settled;
            }
        }
        Ok(copy.map(Dict::new))
    }

    fn settle_items(
        &mut self,
        items: &[Value],
        holders: Holders,
        visited: &mut VisitedValues,
    ) -> Result<Option<Vec<Value>>, Error> {
        self.fuel.spend(items.len() as u64 / 4 + 1)?;
        let mut copy: Option<Vec<Value>> = None;
        for (at, item) in items.iter().enumerate() {
            let Some(settled) = self.settle(item, holders, visited)? else { continue };
            if copy.is_none() {
                self.fuel.allocate_many(items.len(), ITEM)?;
            }
            if let Some(place) = copy.get_or_insert_with(|| items.to_vec()).get_mut(at) {
                *place = settled;
            }
        }
        Ok(copy)
    }
}

/// Whether there may be an iterator in the value, or it is one.
fn holds_others(value: &Value) -> bool {
    match value {
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) => true,
        Value::Object(object) => {
            runs(value) || matches!(object.data(), ObjectData::Struct(_) | ObjectData::View(..))
        }
        _ => false,
    }
}

/// Whether taking values out of it runs code.
fn runs(value: &Value) -> bool {
    let Value::Object(object) = value else { return false };
    matches!(object.data(), ObjectData::Iter(..) | ObjectData::Generator(_))
}
