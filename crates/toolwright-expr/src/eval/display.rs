//! Values written out: lists, sets, dicts and f-strings.

use compact_str::CompactString;
use smallvec::SmallVec;

use super::Eval;
use crate::ast::{DictItem, Expr, ExprForm, FPart};
use crate::error::{Error, Span};
use crate::iter::Iter;
use crate::ops;
use crate::ops::sequence::ITEM;
use crate::value::{Dict, DictMap, KeySet, Set, Value};

impl Eval<'_> {
    #[inline(never)]
    pub(super) fn items(&mut self, items: &[Expr]) -> Result<Vec<Value>, Error> {
        self.fuel.allocate_many(items.len() + 3, ITEM)?;
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match &item.kind {
                ExprForm::Starred(inner) => {
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
    pub(super) fn set(&mut self, items: &[Expr]) -> Result<Value, Error> {
        let values = self.items(items)?;
        self.fuel.allocate_many(values.len() + 1, ops::SET_ENTRY)?;
        let mut set = KeySet::default();
        for value in values {
            set.insert(ops::key(&value, &mut self.fuel)?);
        }
        Ok(Value::Set(Set::new(set, false)))
    }

    #[inline(never)]
    pub(super) fn dict(&mut self, items: &[DictItem]) -> Result<Value, Error> {
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

    pub(super) fn insert_all(
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
    pub(super) fn fstring(&mut self, parts: &[FPart]) -> Result<Value, Error> {
        let mut out = CompactString::default();
        self.fstring_into(parts, &mut out)?;
        Ok(Value::str(out))
    }

    pub(super) fn fstring_into(&mut self, parts: &[FPart], out: &mut CompactString) -> Result<(), Error> {
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
}
