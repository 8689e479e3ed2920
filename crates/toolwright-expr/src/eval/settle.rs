//! What leaves a script, or enters a function of the host: iterators run while those who pay for them are still there.

use std::collections::HashMap;

use super::Eval;
use crate::error::Error;
use crate::ops::DICT_ENTRY;
use crate::ops::sequence::ITEM;
use crate::value::{Dict, Object, ObjectData, Value};

/// Values met before, and what became of them. They are kept, so that no other takes their address meanwhile.
type Met = HashMap<usize, (Value, Option<Value>)>;

impl Eval<'_> {
    /// The value with lists in place of the iterators in it, which run now. What holds none of them stays what it is, as do keys,
    /// members of sets, and what functions hold on to.
    pub(crate) fn settled(&mut self, value: Value) -> Result<Value, Error> {
        Ok(self.settle(&value, false, &mut Met::new())?.unwrap_or(value))
    }

    /// Nothing, when there is no iterator in the value. A value that others hold too (`shared`) is looked at once: a list that holds
    /// another many times is small, however much it seems to hold.
    fn settle(&mut self, value: &Value, shared: bool, met: &mut Met) -> Result<Option<Value>, Error> {
        if !holds_others(value) {
            return Ok(None);
        }
        // What is too deep to be looked at is too deep for a document, too.
        if self.fuel.enter().is_err() {
            return Ok(None);
        }
        let settled = if runs(value) {
            let items = self.collect_value(value)?;
            let settled = self.settle_items(&items, shared, met)?;
            Some(Value::list(settled.unwrap_or(items)))
        } else {
            self.settle_once(value, shared || value.is_shared(), met)?
        };
        self.fuel.leave();
        Ok(settled)
    }

    fn settle_once(&mut self, value: &Value, shared: bool, met: &mut Met) -> Result<Option<Value>, Error> {
        if !shared {
            return self.settle_parts(value, shared, met);
        }
        if let Some((_, settled)) = met.get(&value.address()) {
            return Ok(settled.clone());
        }
        let settled = self.settle_parts(value, shared, met)?;
        // What is remembered is no larger than what is there already, and gone with this walk.
        self.fuel.spend(2)?;
        met.insert(value.address(), (value.clone(), settled.clone()));
        Ok(settled)
    }

    fn settle_parts(&mut self, value: &Value, shared: bool, met: &mut Met) -> Result<Option<Value>, Error> {
        Ok(match value {
            Value::List(list) => self.settle_items(&list.snapshot(), shared, met)?.map(Value::list),
            Value::Tuple(items) => self.settle_items(items, shared, met)?.map(Value::tuple),
            Value::Dict(dict) => self.settle_dict(dict, shared, met)?.map(Value::Dict),
            Value::Object(object) => match object.data() {
                ObjectData::Struct(fields) => {
                    let values: Vec<Value> = fields.values().cloned().collect();
                    let settled = self.settle_items(&values, shared, met)?;
                    settled.map(|values| {
                        Object::new(ObjectData::Struct(fields.keys().cloned().zip(values).collect()))
                    })
                }
                ObjectData::View(kind, dict) => self
                    .settle_dict(dict, shared, met)?
                    .map(|dict| Object::new(ObjectData::View(*kind, dict))),
                _ => None,
            },
            _ => None,
        })
    }

    fn settle_dict(&mut self, dict: &Dict, shared: bool, met: &mut Met) -> Result<Option<Dict>, Error> {
        let map = dict.snapshot();
        self.fuel.spend(map.len() as u64 / 2 + 1)?;
        let mut copy = None;
        for (at, value) in map.values().enumerate() {
            let Some(settled) = self.settle(value, shared, met)? else { continue };
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
        shared: bool,
        met: &mut Met,
    ) -> Result<Option<Vec<Value>>, Error> {
        self.fuel.spend(items.len() as u64 / 4 + 1)?;
        let mut copy: Option<Vec<Value>> = None;
        for (at, item) in items.iter().enumerate() {
            let Some(settled) = self.settle(item, shared, met)? else { continue };
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
