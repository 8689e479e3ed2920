//! Names to slots. Every piece of code (program, function, generator) gets a frame; each name it uses becomes
//! a number in that frame, and each loop learns what a round of it costs. Nothing is looked up by name later
//! except variables of the caller's scope, once per evaluation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ast::{
    Argument, AssignTarget, Body, Code, CodeParam, Comprehension, DictEntry, DictItem, Expr, ExprForm, FPart,
    Function, Operand, Operands, ParamKind, SlotInfo, SlotKind, Stmt, StmtKind, Symbol,
};
use crate::error::{Error, ErrorKind, Span};
use crate::program::ScriptCall;
use crate::value::Value;

/// Completes an expression that stands alone.
pub(crate) fn expression(mut expr: Expr) -> Result<Code, Error> {
    let mut resolver = Resolver::default();
    resolver.frames.push(FrameLayout::new("<expression>"));
    let info = resolver.expr(&mut expr)?;
    Ok(resolver.finish(Body::Expr(expr), info.cost))
}

/// Completes a script: names it assigns are slots as well, filled from the scope before it starts.
pub(crate) fn script(mut statements: Vec<Stmt>) -> Result<(Code, Vec<ScriptCall>), Error> {
    let mut resolver = Resolver::default();
    resolver.frames.push(FrameLayout::new("<script>"));
    resolver.script = true;
    resolver.block(&mut statements)?;
    let code = resolver.finish(Body::Block(statements), 1);
    Ok((code, resolver.calls))
}

#[derive(Default)]
struct Resolver {
    frames: Vec<FrameLayout>,
    script: bool,
    /// The calls of a script.
    calls: Vec<ScriptCall>,
}

/// One frame under construction.
struct FrameLayout {
    name: Symbol,
    slots: Vec<SlotInfo>,
    /// Names of the whole frame.
    names: SlotNames,
    /// Loop variables of comprehensions being read, innermost last.
    blocks: Vec<SlotNames>,
    captures: Vec<(u32, u32)>,
    cells: Vec<u32>,
    /// The same, to be looked up.
    shared: HashSet<u32>,
    /// Blocks of statements around the one being read.
    nesting: u32,
    height: u32,
}

impl FrameLayout {
    fn new(name: &str) -> Self {
        FrameLayout {
            name: Symbol::new(name),
            slots: Vec::new(),
            names: SlotNames::default(),
            blocks: Vec::new(),
            captures: Vec::new(),
            cells: Vec::new(),
            shared: HashSet::new(),
            nesting: 0,
            height: 1,
        }
    }

    fn slot(&mut self, name: &Symbol, kind: SlotKind) -> u32 {
        let index = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let (name, hash) = (name.clone(), crate::value::hash_text(name));
        self.slots.push(SlotInfo { name, hash, kind, first: Span::default() });
        index
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.blocks.iter().rev().find_map(|block| block.get(name)).or_else(|| self.names.get(name))
    }
}

/// A few names and their slots, searched in order; many are searched by hash.
#[derive(Default)]
struct SlotNames {
    list: SmallVec<[(Symbol, u32); 2]>,
    index: Option<HashMap<Symbol, u32>>,
}

impl SlotNames {
    const FEW: usize = 16;

    fn get(&self, name: &str) -> Option<u32> {
        if self.list.len() > Self::FEW {
            return self.index.as_ref().and_then(|index| index.get(name)).copied();
        }
        self.list.iter().find(|(known, _)| known == name).map(|(_, slot)| *slot)
    }

    fn insert(&mut self, name: Symbol, slot: u32) {
        self.list.push((name, slot));
        match self.list.len() {
            0..=Self::FEW => {}
            count if count == Self::FEW + 1 => self.index = Some(self.list.iter().cloned().collect()),
            _ => self.index.get_or_insert_default().extend(self.list.last().cloned()),
        }
    }
}

/// What resolving a piece of tree found out about it.
#[derive(Clone, Copy)]
struct TreeInfo {
    cost: u64,
    calls: bool,
}

impl TreeInfo {
    const LEAF: TreeInfo = TreeInfo { cost: 1, calls: false };

    fn and(self, other: TreeInfo) -> TreeInfo {
        TreeInfo { cost: self.cost + other.cost, calls: self.calls || other.calls }
    }

    fn node(self) -> TreeInfo {
        TreeInfo { cost: self.cost + 1, calls: self.calls }
    }

    fn calling(self) -> TreeInfo {
        TreeInfo { cost: self.cost + 2, calls: true }
    }
}

impl Resolver {
    fn finish(&mut self, body: Body, cost: u64) -> Code {
        let frame = self.frames.pop().unwrap_or_else(|| FrameLayout::new("<empty>"));
        Code {
            body,
            slots: frame.slots,
            captures: frame.captures,
            cells: frame.cells,
            name: frame.name,
            params: Vec::new(),
            cost,
            height: frame.height,
        }
    }

    fn top(&mut self) -> Option<&mut FrameLayout> {
        self.frames.last_mut()
    }

    /// The slot a name means in the innermost frame.
    fn lookup(&mut self, name: &Symbol, span: Span) -> u32 {
        let innermost = self.frames.len().saturating_sub(1);
        self.lookup_in(innermost, name, span)
    }

    fn lookup_in(&mut self, index: usize, name: &Symbol, span: Span) -> u32 {
        if let Some(slot) = self.frames.get(index).and_then(|frame| frame.find(name)) {
            return slot;
        }
        if index == 0 {
            let Some(frame) = self.frames.first_mut() else { return 0 };
            let slot = frame.slot(name, SlotKind::Global(crate::builtins::lookup(name)));
            if let Some(info) = frame.slots.last_mut() {
                info.first = span;
            }
            frame.names.insert(name.clone(), slot);
            return slot;
        }
        let outer = self.lookup_in(index - 1, name, span);
        self.capture(index - 1, outer);
        let Some(frame) = self.frames.get_mut(index) else { return 0 };
        let slot = frame.slot(name, SlotKind::Outer);
        frame.names.insert(name.clone(), slot);
        frame.captures.push((outer, slot));
        slot
    }

    /// Notes that an inner function uses `slot` of frame `index`. Names only read from the scope are copied;
    /// anything that can be given a value later lives in a cell both frames share.
    fn capture(&mut self, index: usize, slot: u32) {
        let script = self.script;
        let Some(frame) = self.frames.get_mut(index) else { return };
        let shared = match frame.slots.get(slot as usize).map(|info| &info.kind) {
            Some(SlotKind::Local) => true,
            Some(SlotKind::Global(_)) => script,
            Some(SlotKind::Outer) | None => false,
        };
        if shared && frame.shared.insert(slot) {
            frame.cells.push(slot);
        }
    }

    fn exprs(&mut self, items: &mut [Expr]) -> Result<TreeInfo, Error> {
        let mut info = TreeInfo { cost: 0, calls: false };
        for item in items {
            info = info.and(self.expr(item)?);
        }
        Ok(info.node())
    }

    fn expr(&mut self, expr: &mut Expr) -> Result<TreeInfo, Error> {
        let span = expr.span;
        if let Some(frame) = self.frames.last_mut() {
            frame.height = frame.height.max(frame.nesting * 2 + u32::from(expr.height));
        }
        Ok(match &mut expr.kind {
            ExprForm::Const(_) | ExprForm::Slot(_) => TreeInfo::LEAF,
            ExprForm::Name(name) => {
                let name = std::mem::take(name);
                expr.kind = ExprForm::Slot(self.lookup(&name, span));
                TreeInfo::LEAF
            }
            ExprForm::Binary(binary) => {
                let info = self.expr(&mut binary.left)?.and(self.expr(&mut binary.right)?).node();
                binary.quick = operands(&binary.left, &binary.right);
                info
            }
            ExprForm::Chain(chain) => {
                let mut info = self.expr(&mut chain.first)?;
                for (_, operand) in &mut chain.rest {
                    info = info.and(self.expr(operand)?).node();
                }
                info
            }
            ExprForm::Compare(compare) => {
                let info = self.expr(&mut compare.left)?.and(self.expr(&mut compare.right)?).node();
                compare.quick = operands(&compare.left, &compare.right);
                info
            }
            ExprForm::Compares(compares) => {
                let mut info = self.expr(&mut compares.first)?;
                for (_, operand) in &mut compares.rest {
                    info = info.and(self.expr(operand)?).node();
                }
                info
            }
            ExprForm::Not(value) | ExprForm::Unary(_, value) | ExprForm::Starred(value) => {
                self.expr(value)?.node()
            }
            ExprForm::And(items) | ExprForm::Or(items) => self.exprs(items)?,
            ExprForm::List(items) | ExprForm::Tuple(items) | ExprForm::Set(items) => self.exprs(items)?,
            ExprForm::Conditional(conditional) => {
                let test = self.expr(&mut conditional.test)?;
                let then = self.expr(&mut conditional.then)?;
                test.and(then).and(self.expr(&mut conditional.other)?).node()
            }
            ExprForm::Attribute(attribute) => self.expr(&mut attribute.value)?.node(),
            ExprForm::Item(item) => self.expr(&mut item.value)?.node(),
            ExprForm::Subscript(subscript) => {
                let info = self.expr(&mut subscript.value)?.and(self.expr(&mut subscript.index)?).node();
                if let ExprForm::Const(key @ Value::Str(text)) = &subscript.index.kind {
                    let (key, hash) = (key.clone(), crate::value::hash_text(text));
                    let nothing = Expr { kind: ExprForm::Const(Value::None), span, height: 1 };
                    let value = std::mem::replace(&mut subscript.value, nothing);
                    expr.kind = ExprForm::Item(Box::new(DictEntry { value, key, hash }));
                }
                info
            }
            ExprForm::Slice(parts) => {
                let mut info = TreeInfo::LEAF;
                for part in parts.iter_mut().flatten() {
                    info = info.and(self.expr(part)?);
                }
                info
            }
            ExprForm::Call(call) => {
                if let (ExprForm::Name(name), Some(frame)) = (&call.callee.kind, self.frames.get(1))
                    && self.script
                    && *name == frame.name
                {
                    return Err(Error::new(ErrorKind::Forbidden, format!("function '{name}' calls itself"))
                        .at(span)
                        .with_hint("recursion is not part of the language"));
                }
                if let (true, ExprForm::Name(name)) = (self.script, &call.callee.kind) {
                    self.calls.push(ScriptCall::new(name, &call.args, call.callee.span));
                }
                let mut info = self.expr(&mut call.callee)?;
                for arg in &mut call.args {
                    info = info.and(match arg {
                        Argument::Positional(value)
                        | Argument::Star(value)
                        | Argument::Keyword(_, value)
                        | Argument::DoubleStar(value) => self.expr(value)?,
                    });
                }
                info.calling()
            }
            ExprForm::Dict(items) => {
                let mut info = TreeInfo::LEAF;
                for item in items {
                    info = info.and(match item {
                        DictItem::Pair(key, value) => self.expr(key)?.and(self.expr(value)?),
                        DictItem::Spread(value) => self.expr(value)?,
                    });
                }
                info
            }
            ExprForm::ListComp(comprehension)
            | ExprForm::SetComp(comprehension)
            | ExprForm::DictComp(comprehension) => self.comprehension(comprehension)?,
            ExprForm::Generator(comprehension) => self.generator(comprehension)?,
            ExprForm::Lambda(function) => self.function(function)?,
            ExprForm::FString(parts) => self.fstring(parts)?,
        })
    }

    fn fstring(&mut self, parts: &mut [FPart]) -> Result<TreeInfo, Error> {
        let mut info = TreeInfo::LEAF;
        for part in parts {
            info = info.node();
            if let FPart::Field(field) = part {
                info = info.and(self.expr(&mut field.value)?).and(self.fstring(&mut field.spec)?);
            }
        }
        Ok(info)
    }

    fn comprehension(&mut self, comprehension: &mut Comprehension) -> Result<TreeInfo, Error> {
        let outer = match comprehension.clauses.first_mut() {
            Some(clause) => self.expr(&mut clause.iter)?,
            None => TreeInfo::LEAF,
        };
        let first_slot = self.top().map_or(0, |frame| frame.slots.len());
        let info = self.loops(comprehension)?;
        if let Some(frame) = self.top() {
            // Which loop variables were captured is known only now.
            let cells = std::mem::take(&mut frame.cells);
            let is_own = |slot: &u32| {
                let index = *slot as usize;
                index >= first_slot
                    && matches!(frame.slots.get(index), Some(info) if matches!(info.kind, SlotKind::Local))
            };
            let (own, rest) = cells.into_iter().partition(is_own);
            frame.cells = rest;
            comprehension.cells = own;
        }
        Ok(outer.and(TreeInfo { cost: 1, calls: info.calls }))
    }

    /// Clauses and element, the first iterable left out: it belongs to the frame around.
    fn loops(&mut self, comprehension: &mut Comprehension) -> Result<TreeInfo, Error> {
        if let Some(frame) = self.top() {
            frame.blocks.push(SlotNames::default());
        }
        let mut heads: SmallVec<[(TreeInfo, TreeInfo); 2]> = SmallVec::new();
        for (index, clause) in comprehension.clauses.iter_mut().enumerate() {
            let iter =
                if index > 0 { self.expr(&mut clause.iter)? } else { TreeInfo { cost: 0, calls: false } };
            self.bind_loop(&mut clause.target)?;
            let mut conditions = TreeInfo { cost: 1, calls: false };
            for condition in &mut clause.conditions {
                conditions = conditions.and(self.expr(condition)?);
            }
            clause.cost = conditions.cost;
            heads.push((iter, conditions));
        }
        let mut body = self.expr(&mut comprehension.element)?;
        if let Some(value) = &mut comprehension.value {
            body = body.and(self.expr(value)?);
        }
        if let Some(frame) = self.top() {
            frame.blocks.pop();
        }
        // Each round pays for its conditions and for whatever it starts: the next loop, or the element.
        let mut inner = body;
        for (clause, (iter, conditions)) in comprehension.clauses.iter_mut().zip(heads).rev() {
            clause.cost = conditions.cost + inner.cost;
            clause.pure = !(conditions.calls || inner.calls);
            inner = TreeInfo { cost: iter.cost + 1, calls: conditions.calls || inner.calls || iter.calls };
        }
        Ok(inner)
    }

    fn bind_loop(&mut self, target: &mut AssignTarget) -> Result<(), Error> {
        match target {
            AssignTarget::Name(name, _) => {
                let name = std::mem::take(name);
                let Some(frame) = self.top() else { return Ok(()) };
                let known = frame.blocks.last().and_then(|block| block.get(&name));
                let slot = known.unwrap_or_else(|| frame.slot(&name, SlotKind::Local));
                if let Some(block) = frame.blocks.last_mut() {
                    block.insert(name, slot);
                }
                *target = AssignTarget::Slot(slot);
                Ok(())
            }
            AssignTarget::Tuple(items, _) => items.iter_mut().try_for_each(|item| self.bind_loop(item)),
            AssignTarget::Slot(_) | AssignTarget::Item(..) => Ok(()),
        }
    }

    fn generator(&mut self, comprehension: &mut Box<Comprehension>) -> Result<TreeInfo, Error> {
        let mut info = TreeInfo::LEAF;
        if let Some(clause) = comprehension.clauses.first_mut() {
            info = self.expr(&mut clause.iter)?;
        }
        self.frames.push(FrameLayout::new("<genexpr>"));
        let body = self.loops(comprehension)?;
        let span = comprehension.element.span;
        let empty = Comprehension {
            element: Expr { kind: ExprForm::Const(Value::None), span, height: 1 },
            value: None,
            clauses: Vec::new(),
            cells: Vec::new(),
            code: None,
        };
        let mut inner = std::mem::replace(&mut **comprehension, empty);
        // The evaluator reads the first iterable from the frame around, so it stays in the outer node.
        if let Some(clause) = inner.clauses.first_mut() {
            let placeholder = Expr { kind: ExprForm::Const(Value::None), span, height: 1 };
            comprehension.element = std::mem::replace(&mut clause.iter, placeholder);
        }
        let code = self.finish(Body::Generator(Box::new(inner)), body.cost);
        comprehension.code = Some(Arc::new(code));
        Ok(info.calling())
    }

    fn function(&mut self, function: &mut Function) -> Result<TreeInfo, Error> {
        let mut info = TreeInfo::LEAF;
        for param in &mut function.params {
            if let Some(default) = &mut param.default {
                info = info.and(self.expr(default)?);
            }
        }
        let mut frame = FrameLayout::new(&function.name);
        let mut params = Vec::new();
        for param in &function.params {
            let slot = frame.slot(&param.name, SlotKind::Local);
            frame.names.insert(param.name.clone(), slot);
            let required =
                param.default.is_none() && matches!(param.kind, ParamKind::Normal | ParamKind::KeywordOnly);
            params.push(CodeParam { name: param.name.clone(), slot, kind: param.kind, required });
        }
        self.frames.push(frame);
        let mut body = std::mem::replace(&mut function.body, Body::Taken);
        let cost = match &mut body {
            Body::Expr(expr) => self.expr(expr)?.cost,
            Body::Block(statements) => {
                self.declare(statements);
                self.block(statements)?;
                1
            }
            Body::Generator(_) | Body::Taken => 1,
        };
        let mut code = self.finish(body, cost + 2);
        code.params = params;
        function.code = Some(Arc::new(code));
        Ok(info.calling())
    }

    /// Names a function assigns are its own from its first line on.
    fn declare(&mut self, statements: &[Stmt]) {
        for statement in statements {
            match &statement.kind {
                StmtKind::Assign(targets, _) | StmtKind::Del(targets) => {
                    targets.iter().for_each(|target| self.declare_target(target));
                }
                StmtKind::Augment(target, ..) | StmtKind::Def(_, target) => self.declare_target(target),
                StmtKind::If(branches, other) => {
                    branches.iter().for_each(|(_, body)| self.declare(body));
                    self.declare(other);
                }
                StmtKind::For(target, _, body, other) => {
                    self.declare_target(target);
                    self.declare(body);
                    self.declare(other);
                }
                _ => {}
            }
        }
    }

    fn declare_target(&mut self, target: &AssignTarget) {
        match target {
            AssignTarget::Name(name, _) => {
                let Some(frame) = self.top() else { return };
                if frame.names.get(name).is_none() {
                    let slot = frame.slot(name, SlotKind::Local);
                    frame.names.insert(name.clone(), slot);
                }
            }
            AssignTarget::Tuple(items, _) => items.iter().for_each(|item| self.declare_target(item)),
            AssignTarget::Slot(_) | AssignTarget::Item(..) => {}
        }
    }

    fn block(&mut self, statements: &mut [Stmt]) -> Result<(), Error> {
        self.nest(1);
        let result = statements.iter_mut().try_for_each(|statement| self.statement(statement));
        self.nest(-1);
        result
    }

    fn nest(&mut self, change: i32) {
        if let Some(frame) = self.top() {
            frame.nesting = frame.nesting.saturating_add_signed(change);
        }
    }

    fn statement(&mut self, statement: &mut Stmt) -> Result<(), Error> {
        let mut cost = 1;
        match &mut statement.kind {
            StmtKind::Expr(expr) => cost += self.expr(expr)?.cost,
            StmtKind::Assign(targets, value) => {
                cost += self.expr(value)?.cost;
                for target in targets {
                    cost += self.target(target)?;
                }
            }
            StmtKind::Augment(target, _, value) => cost += self.expr(value)?.cost + self.target(target)?,
            StmtKind::If(branches, other) => {
                for (test, body) in branches {
                    cost += self.expr(test)?.cost;
                    self.block(body)?;
                }
                self.block(other)?;
            }
            StmtKind::For(target, iter, body, other) => {
                cost += self.expr(iter)?.cost + self.target(target)?;
                self.block(body)?;
                self.block(other)?;
            }
            StmtKind::Def(function, target) => {
                self.target(target)?;
                cost += self.function(function)?.cost;
            }
            StmtKind::Return(value) | StmtKind::Raise(value) => {
                if let Some(value) = value {
                    cost += self.expr(value)?.cost;
                }
            }
            StmtKind::Assert(test, message) => {
                cost += self.expr(test)?.cost;
                if let Some(message) = message {
                    cost += self.expr(message)?.cost;
                }
            }
            StmtKind::Del(targets) => {
                for target in targets {
                    cost += self.target(target)?;
                }
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Pass => {}
        }
        statement.cost = cost;
        Ok(())
    }

    fn target(&mut self, target: &mut AssignTarget) -> Result<u64, Error> {
        Ok(match target {
            AssignTarget::Name(name, span) => {
                let (name, span) = (std::mem::take(name), *span);
                *target = AssignTarget::Slot(self.lookup(&name, span));
                1
            }
            AssignTarget::Slot(_) => 1,
            AssignTarget::Tuple(items, _) => {
                let mut cost = 1;
                for item in items {
                    cost += self.target(item)?;
                }
                cost
            }
            AssignTarget::Item(subscript, _) => {
                self.expr(&mut subscript.value)?.and(self.expr(&mut subscript.index)?).cost
            }
        })
    }
}

/// The operands of an operator worth trying as machine arithmetic: no more than a few variables and numbers.
fn operands(left: &Expr, right: &Expr) -> Option<Operands> {
    Some(Operands { left: operand(left)?, right: operand(right)? })
}

fn operand(expr: &Expr) -> Option<Operand> {
    match &expr.kind {
        ExprForm::Slot(slot) => Some(Operand::Slot(*slot)),
        ExprForm::Const(Value::Int(number)) => Some(Operand::Int(*number)),
        ExprForm::Const(Value::Float(number)) => Some(Operand::Float(*number)),
        ExprForm::Binary(binary) if binary.quick.is_some() && expr.height <= 4 => Some(Operand::Inner),
        _ => None,
    }
}
