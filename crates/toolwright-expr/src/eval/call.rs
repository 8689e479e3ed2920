//! Calls: arguments, functions written in the language, the host's functions, and binding one to the other.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{CodeRef, Eval, Frame, frame_of};
use crate::ast::{Argument, Body, CallExpr, Code, ExprForm, Function, ParamKind};
use crate::error::{Error, ErrorKind, Span, nearest};
use crate::host::{HostArgs, HostFunction};
use crate::iter::Iter;
use crate::types::Type;
use crate::value::{Dict, DictMap, Key, Object, ObjectData, TextKey, Value, lock};

/// Arguments of a call.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) positional: SmallVec<[Value; 4]>,
    pub(crate) named: Vec<(Arc<str>, Value)>,
}

impl Args {
    /// Binds arguments to parameters. A name starting with `/` is positional only; the first `required` must
    /// be there.
    pub(crate) fn bind<const N: usize>(
        self,
        function: &str,
        names: [&str; N],
        required: usize,
    ) -> Result<[Option<Value>; N], Error> {
        let given = self.positional.len() + self.named.len();
        if self.positional.len() > N {
            return Err(too_many(function, N, required, given));
        }
        let mut slots = [const { None }; N];
        for (slot, value) in slots.iter_mut().zip(self.positional) {
            *slot = Some(value);
        }
        for (name, value) in self.named {
            let place = names.iter().position(|known| *known == &*name);
            match place.and_then(|place| slots.get_mut(place)) {
                Some(slot) if slot.is_none() => *slot = Some(value),
                Some(_) => {
                    return Err(Error::type_(format!(
                        "{function}() got multiple values for argument '{name}'"
                    )));
                }
                None => return Err(no_such_keyword(function, &name, &names)),
            }
        }
        let missing = slots.iter().take(required).position(Option::is_none);
        match missing {
            None => Ok(slots),
            Some(_) => Err(too_few(function, N, required, given)),
        }
    }

    /// The one argument of a function that takes exactly one.
    pub(crate) fn one(self, function: &str) -> Result<Value, Error> {
        let [value] = self.bind(function, ["/"], 1)?;
        value.ok_or_else(|| too_few(function, 1, 1, 0))
    }

    /// Checks that nothing was passed.
    pub(crate) fn none(self, function: &str) -> Result<(), Error> {
        self.bind::<0>(function, [], 0).map(drop)
    }

    /// Checks that nothing was passed by name.
    pub(crate) fn no_keywords(&self, function: &str) -> Result<(), Error> {
        match self.named.first() {
            Some(_) => Err(Error::type_(format!("{function}() takes no keyword arguments"))),
            None => Ok(()),
        }
    }
}

#[cold]
fn too_many(function: &str, most: usize, required: usize, given: usize) -> Error {
    let bound = if most == required { "exactly" } else { "at most" };
    Error::type_(format!("{function}() takes {bound} {} ({given} given)", count(most)))
}

#[cold]
fn too_few(function: &str, most: usize, required: usize, given: usize) -> Error {
    let bound = if most == required { "exactly" } else { "at least" };
    Error::type_(format!("{function}() takes {bound} {} ({given} given)", count(required)))
}

fn count(number: usize) -> String {
    match number {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        _ => format!("{number} arguments"),
    }
}

#[cold]
fn no_such_keyword(function: &str, name: &str, names: &[&str]) -> Error {
    let offered: Vec<&str> = names.iter().copied().filter(|name| !name.starts_with('/')).collect();
    if offered.is_empty() {
        return Error::type_(format!("{function}() takes no keyword arguments"));
    }
    let error = Error::type_(format!("'{name}' is an invalid keyword argument for {function}()"));
    match nearest(name, offered.into_iter()) {
        Some(close) => error.with_hint(format!("did you mean `{close}`?")),
        None => error,
    }
}

/// A function written in the language, with the values it captured.
pub(crate) struct Closure {
    code: Arc<Code>,
    captured: Vec<(u32, Value)>,
    defaults: Vec<Option<Value>>,
}

impl Closure {
    pub(crate) fn name(&self) -> &str {
        &self.code.name
    }

    pub(crate) fn take_values(&mut self) -> Vec<Value> {
        let captured = self.captured.drain(..).map(|(_, value)| value);
        captured.chain(self.defaults.drain(..).flatten()).collect()
    }
}

impl Eval<'_> {
    #[inline(never)]
    pub(super) fn call(&mut self, call: &CallExpr, span: Span) -> Result<Value, Error> {
        if let ExprForm::Attribute(attribute) = &call.callee.kind {
            let receiver = self.eval(&attribute.value)?;
            let name = &attribute.name;
            // A key of a dict wins over the method of that name.
            let found = match &receiver {
                Value::Dict(dict) => dict.get_hashed(&TextKey::with_hash(&name.text, name.hash)),
                Value::Object(_) | Value::Type(_) => {
                    Some(self.attribute_of(&receiver, name).map_err(|error| error.at(call.callee.span))?)
                }
                _ => None,
            };
            if let Some(callee) = found {
                let args = self.arguments(&call.args)?;
                return self.call_value(&callee, args).map_err(|error| error.at(span));
            }
            let method = name.method.and_then(|row| crate::builtins::method_of(Type::of(&receiver), row));
            let Some(method) = method else {
                let callee =
                    self.attribute_of(&receiver, name).map_err(|error| error.at(call.callee.span))?;
                let args = self.arguments(&call.args)?;
                return self.call_value(&callee, args).map_err(|error| error.at(span));
            };
            let args = self.arguments(&call.args)?;
            return (method.call)(self, &receiver, args).map_err(|error| error.at(span));
        }
        let callee = self.eval(&call.callee)?;
        let args = self.arguments(&call.args)?;
        self.call_value(&callee, args).map_err(|error| error.at(span))
    }

    fn arguments(&mut self, arguments: &[Argument]) -> Result<Args, Error> {
        let mut args = Args::default();
        for argument in arguments {
            match argument {
                Argument::Positional(value) => args.positional.push(self.eval(value)?),
                Argument::Keyword(name, value) => {
                    let value = self.eval(value)?;
                    self.named(&mut args, Arc::clone(name), value)?;
                }
                Argument::Star(value) => {
                    let source = self.eval(value)?;
                    let iter = Iter::over(&source).map_err(|_| {
                        Error::type_(format!(
                            "argument after * must be an iterable, not {}",
                            source.type_name()
                        ))
                        .at(value.span)
                    })?;
                    args.positional.extend(self.collect(iter)?);
                }
                Argument::DoubleStar(value) => self.spread(&mut args, value)?,
            }
        }
        Ok(args)
    }

    fn named(&mut self, args: &mut Args, name: Arc<str>, value: Value) -> Result<(), Error> {
        self.fuel.allocate(64)?;
        self.fuel.spend(args.named.len() as u64 / 8)?;
        if args.named.iter().any(|(known, _)| *known == name) {
            return Err(Error::type_(format!("got multiple values for keyword argument '{name}'")));
        }
        args.named.push((name, value));
        Ok(())
    }

    fn spread(&mut self, args: &mut Args, value: &crate::ast::Expr) -> Result<(), Error> {
        let source = self.eval(value)?;
        let Value::Dict(dict) = &source else {
            return Err(Error::type_(format!(
                "argument after ** must be a mapping, not {}",
                source.type_name()
            ))
            .at(value.span));
        };
        for (key, value) in dict.snapshot().iter() {
            let Value::Str(name) = &key.value else { return Err(Error::type_("keywords must be strings")) };
            self.named(args, Arc::from(name.as_str()), value.clone())?;
        }
        Ok(())
    }

    /// Calls whatever can be called.
    pub(crate) fn call_value(&mut self, callee: &Value, args: Args) -> Result<Value, Error> {
        match callee {
            Value::Builtin(builtin) => (builtin.call)(self, args),
            Value::Type(kind) => crate::builtins::construct(self, *kind, args),
            Value::Object(object) => match object.data() {
                ObjectData::Method(receiver, method) => (method.call)(self, receiver, args),
                ObjectData::Unbound(kind, method) => self.call_unbound(*kind, method, args),
                ObjectData::Closure(closure) => self.call_closure(closure, args),
                ObjectData::Host(function) => self.call_host(&**function, args),
                _ => Err(not_callable(callee)),
            },
            _ => Err(not_callable(callee)),
        }
    }

    /// Calls a function with positional arguments only, as `map` and `key=` do.
    pub(crate) fn call_with(&mut self, callee: &Value, values: &[Value]) -> Result<Value, Error> {
        self.fuel.spend(6)?;
        self.call_value(callee, Args { positional: SmallVec::from(values), named: Vec::new() })
    }

    /// `str.upper('a')`: the receiver is the first argument, except for methods of the type itself.
    fn call_unbound(
        &mut self,
        kind: Type,
        method: &'static crate::builtins::Method,
        mut args: Args,
    ) -> Result<Value, Error> {
        if method.of_type {
            return (method.call)(self, &Value::Type(kind), args);
        }
        if args.positional.is_empty() {
            return Err(Error::type_(format!(
                "unbound method {}.{}() needs an argument",
                kind.name(),
                method.name
            )));
        }
        let receiver = args.positional.remove(0);
        if !Type::of(&receiver).derives_from(kind) {
            return Err(Error::type_(format!(
                "descriptor '{}' for '{}' objects doesn't apply to a '{}' object",
                method.name,
                kind.name(),
                receiver.type_name()
            )));
        }
        (method.call)(self, &receiver, args)
    }

    fn call_host(&mut self, function: &dyn HostFunction, args: Args) -> Result<Value, Error> {
        self.fuel.spend(10)?;
        let mut host = HostArgs { positional: args.positional.into_vec(), ..HostArgs::default() };
        for value in &mut host.positional {
            *value = self.settled(std::mem::replace(value, Value::None))?;
        }
        for (name, value) in args.named {
            host.named.insert(name, self.settled(value)?);
        }
        let outcome = function.call(host);
        // The host may have taken long; a cancelled flow must not go on computing.
        self.fuel.spend(1)?;
        outcome.map_err(|error| {
            Error::new(ErrorKind::Host, error.message).with_class(error.class).with_source(error.source)
        })
    }

    /// Makes a function value, with defaults evaluated now and outer variables captured.
    #[inline(never)]
    pub(super) fn closure(&mut self, function: &Function) -> Result<Value, Error> {
        let Some(code) = &function.code else { return Err(Error::runtime("function was never resolved")) };
        let mut defaults = Vec::with_capacity(function.params.len());
        for param in &function.params {
            defaults.push(match &param.default {
                Some(default) => Some(self.eval(default)?),
                None => None,
            });
        }
        let captured = self.captured(code);
        self.fuel.allocate(128 + captured.len() * 24 + defaults.len() * 24)?;
        Ok(Object::new(ObjectData::Closure(Closure { code: Arc::clone(code), captured, defaults })))
    }

    /// Values of outer variables for code that will run in its own frame.
    pub(super) fn captured(&self, code: &Code) -> Vec<(u32, Value)> {
        let value_of = |outer: u32| match self.frame.get(outer as usize) {
            Some(Value::Unbound) | None => self.resolve_global(outer).unwrap_or(Value::Unbound),
            Some(value) => value.clone(),
        };
        code.captures.iter().map(|(outer, inner)| (*inner, value_of(*outer))).collect()
    }

    #[inline(never)]
    fn call_closure(&mut self, closure: &Closure, args: Args) -> Result<Value, Error> {
        let code = Arc::clone(&closure.code);
        self.fuel.spend(code.cost)?;
        self.fuel.enter_by(code.height + 3)?;
        let result = self.bind_closure(closure, args).and_then(|frame| {
            let outer = std::mem::replace(&mut self.frame, frame);
            let outer_code = std::mem::replace(&mut self.code, CodeRef::Shared(Arc::clone(&code)));
            let outer_lazy = std::mem::replace(&mut self.lazy, false);
            let result = match &code.body {
                Body::Expr(expr) => self.eval(expr),
                Body::Block(statements) => self.function_body(statements),
                Body::Generator(_) | Body::Taken => Err(Error::runtime("not a function")),
            };
            self.lazy = outer_lazy;
            self.code = outer_code;
            self.frame = outer;
            result
        });
        self.fuel.leave_by(code.height + 3);
        result
    }

    /// A frame with parameters, defaults and captured variables in place.
    fn bind_closure(&mut self, closure: &Closure, args: Args) -> Result<Frame, Error> {
        let code = &closure.code;
        let name = &code.name;
        let mut frame = frame_of(code);
        let mut set = |slot: u32, value: Value| {
            if let Some(place) = frame.get_mut(slot as usize) {
                *place = value;
            }
        };
        for (slot, value) in &closure.captured {
            set(*slot, value.clone());
        }
        let given = args.positional.len();
        let mut positional = args.positional.into_iter();
        let mut named = args.named;
        for (param, default) in code.params.iter().zip(&closure.defaults) {
            let by_name = |named: &mut Vec<(Arc<str>, Value)>| {
                let at = named.iter().position(|(name, _)| **name == *param.name)?;
                Some(named.remove(at).1)
            };
            let value = match param.kind {
                ParamKind::Star => Value::tuple(positional.by_ref().collect()),
                ParamKind::DoubleStar => {
                    let entries = named.drain(..).map(|(name, value)| (Key::text(&*name), value));
                    Value::Dict(Dict::new(entries.collect::<DictMap>()))
                }
                ParamKind::Normal => match positional.next() {
                    Some(value) => {
                        if named.iter().any(|(name, _)| **name == *param.name) {
                            return Err(Error::type_(format!(
                                "{name}() got multiple values for argument '{}'",
                                param.name
                            )));
                        }
                        value
                    }
                    None => by_name(&mut named).or_else(|| default.clone()).unwrap_or(Value::Unbound),
                },
                ParamKind::KeywordOnly => {
                    by_name(&mut named).or_else(|| default.clone()).unwrap_or(Value::Unbound)
                }
            };
            if param.required && value.is_unbound() {
                return Err(Error::type_(format!("{name}() missing 1 required argument: '{}'", param.name)));
            }
            set(param.slot, value);
        }
        if positional.next().is_some() {
            let most = code.params.iter().filter(|param| param.kind == ParamKind::Normal).count();
            return Err(Error::type_(format!(
                "{name}() takes {most} positional arguments but {given} were given"
            )));
        }
        if let Some((unknown, _)) = named.first() {
            return Err(Error::type_(format!("{name}() got an unexpected keyword argument '{unknown}'")));
        }
        for slot in &code.cells {
            if let Some(place) = frame.get_mut(*slot as usize) {
                let value = std::mem::replace(place, Value::Unbound);
                *place = Object::new(ObjectData::Cell(std::sync::Mutex::new(value)));
            }
        }
        Ok(frame)
    }

    /// A variable of the script's own frame, for `result` and `run`.
    pub(super) fn variable(&self, name: &str) -> Option<Value> {
        let slot = self.code.slots.iter().position(|info| &*info.name == name)?;
        match self.frame.get(slot) {
            None | Some(Value::Unbound) => None,
            Some(Value::Object(object)) => match object.data() {
                ObjectData::Cell(cell) => Some(lock(cell).clone()).filter(|value| !value.is_unbound()),
                _ => Some(Value::Object(object.clone())),
            },
            Some(value) => Some(value.clone()),
        }
    }
}

#[cold]
fn not_callable(callee: &Value) -> Error {
    Error::type_(format!("'{}' object is not callable", callee.type_name()))
}
