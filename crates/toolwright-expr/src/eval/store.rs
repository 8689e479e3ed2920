//! Giving variables, items and targets their values, and taking items away.

use super::Eval;
use crate::ast::AssignTarget;
use crate::error::Error;
use crate::iter::Iter;
use crate::ops;
use crate::value::{List, ObjectData, Value, lock};

impl Eval<'_> {
    /// Gives a variable its value.
    #[inline]
    pub(super) fn store_slot(&mut self, slot: u32, value: Value) {
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
    pub(super) fn store(&mut self, target: &AssignTarget, value: Value) -> Result<(), Error> {
        match target {
            AssignTarget::Slot(slot) => {
                self.store_slot(*slot, value);
                Ok(())
            }
            _ => self.store_rare(target, value),
        }
    }

    #[inline(never)]
    pub(super) fn store_rare(&mut self, target: &AssignTarget, value: Value) -> Result<(), Error> {
        match target {
            AssignTarget::Slot(_) => self.store(target, value),
            AssignTarget::Tuple(targets, star) => self.unpack(targets, *star, value),
            AssignTarget::Item(subscript, span) => {
                let container = self.eval(&subscript.value)?;
                let index = self.eval(&subscript.index)?;
                self.set_item(&container, &index, value).map_err(|error| error.at(*span))
            }
            AssignTarget::Name(name, span) => {
                Err(Error::runtime(format!("name '{name}' was never resolved")).at(*span))
            }
        }
    }

    pub(super) fn unpack(
        &mut self,
        targets: &[AssignTarget],
        star: Option<usize>,
        value: Value,
    ) -> Result<(), Error> {
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

    /// `container[index] = value`.
    pub(super) fn set_item(&mut self, container: &Value, index: &Value, value: Value) -> Result<(), Error> {
        if let (Value::List(list), Some(parts)) = (container, slice_of(index)) {
            return self.set_slice(container, list, parts, &value);
        }
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

    /// `list[a:b] = values`: a run of items is replaced by any number of others, items apart by as many
    /// others.
    fn set_slice(
        &mut self,
        container: &Value,
        list: &List,
        parts: &[Value; 3],
        value: &Value,
    ) -> Result<(), Error> {
        let iter = Iter::over(value).map_err(|_| Error::type_("can only assign an iterable"))?;
        let values = self.collect_up_to(iter, usize::MAX)?;
        for item in &values {
            self.guard_cycle(container, item)?;
        }
        self.fuel.allocate_many(values.len(), ops::sequence::ITEM)?;
        self.fuel.spend(list.len() as u64 >> 2)?;
        let bounds = ops::sequence::bounds(parts, list.len())?;
        if bounds.step == 1 {
            let start = usize::try_from(bounds.start).unwrap_or(0);
            list.change(|items| {
                let end = start.saturating_add(bounds.count).min(items.len());
                items.splice(start.min(end)..end, values);
            });
            return Ok(());
        }
        if values.len() != bounds.count {
            return Err(Error::value(format!(
                "attempt to assign sequence of size {} to extended slice of size {}",
                values.len(),
                bounds.count
            )));
        }
        let places = places(parts, list.len())?;
        list.change(|items| {
            for (at, value) in places.into_iter().zip(values) {
                if let Some(place) = items.get_mut(at) {
                    *place = value;
                }
            }
        });
        Ok(())
    }

    /// `del container[index]`.
    pub(super) fn delete_item(&mut self, container: &Value, index: &Value) -> Result<(), Error> {
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
                if let Some(parts) = slice_of(index) {
                    let places = places(parts, list.len())?;
                    self.fuel.spend(list.len() as u64 >> 2)?;
                    let gone: std::collections::HashSet<usize> = places.into_iter().collect();
                    let mut at = 0..;
                    list.change(|items| items.retain(|_| !at.next().is_some_and(|at| gone.contains(&at))));
                    return Ok(());
                }
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

/// The parts of a slice used as an index.
fn slice_of(index: &Value) -> Option<&[Value; 3]> {
    let Value::Object(object) = index else { return None };
    match object.data() {
        ObjectData::Slice(parts) => Some(parts),
        _ => None,
    }
}

/// Where the items of a slice are.
fn places(parts: &[Value; 3], length: usize) -> Result<Vec<usize>, Error> {
    let bounds = ops::sequence::bounds(parts, length)?;
    let place = |at: usize| {
        let away = i64::try_from(at).ok()?.checked_mul(bounds.step)?;
        usize::try_from(bounds.start.checked_add(away)?).ok()
    };
    Ok((0..bounds.count).map_while(place).collect())
}

fn may_hold(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Dict(_) | Value::Tuple(_) | Value::Object(_))
}

#[cold]
fn holds_itself() -> Error {
    Error::value("a list or dict cannot hold itself")
}
