//! What a run may spend: turns, tool calls, tokens, money, wall time and working time.
//!
//! Limits are scoped: a nested scope (a sub-agent, say) spends from its own limits and from all those around
//! it. A [`Permit`] says that a call was admitted and until when it may run; reaching a limit is an error
//! that names it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use toolwright_core::{ErrorKind, ToolError, Usage};
use toolwright_util::lock;

use crate::clock::{Clock, FOREVER};

/// What a run may spend; `None` means no limit.
///
/// ```
/// use toolwright_runtime::RunLimits;
///
/// let limits = RunLimits { tool_calls: Some(100), ..RunLimits::default() };
/// assert_eq!(limits.turns, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunLimits {
    /// Model answers.
    pub turns: Option<u64>,
    /// Messages in the conversation.
    pub messages: Option<u64>,
    /// Tool calls, nested ones included.
    pub tool_calls: Option<u64>,
    /// The same calls with the same results, or the same two or three turns of calls, again and again: one
    /// more is refused, the next is refused and the model asked for an answer without tools, and one after
    /// that ends the run.
    pub repeats: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Money, in US dollars.
    pub cost: Option<f64>,
    /// Time by the clock, in seconds.
    pub wall_time: Option<f64>,
    /// Time by the clock, less time spent waiting for people, rate limits and retries; in seconds.
    pub working_time: Option<f64>,
}

/// The kinds of limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Model answers.
    Turns,
    /// Messages.
    Messages,
    /// Tool calls.
    ToolCalls,
    /// The same calls again.
    Repeats,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
    /// Time by the clock.
    WallTime,
    /// Time by the clock less waiting.
    WorkingTime,
}

impl LimitKind {
    /// The key in a limits section.
    pub fn as_str(self) -> &'static str {
        match self {
            LimitKind::Turns => "turns",
            LimitKind::Messages => "messages",
            LimitKind::ToolCalls => "tool_calls",
            LimitKind::Repeats => "repeats",
            LimitKind::Tokens => "tokens",
            LimitKind::Cost => "cost",
            LimitKind::WallTime => "wall_time",
            LimitKind::WorkingTime => "working_time",
        }
    }
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitReached {
    /// Which.
    pub limit: LimitKind,
    /// How much may be spent.
    pub max: f64,
    /// How much would have been spent.
    pub value: f64,
}

impl std::fmt::Display for LimitReached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let max = self.max;
        match self.limit {
            LimitKind::Turns => write!(f, "the limit of {max} turns is used up"),
            LimitKind::Messages => write!(f, "the limit of {max} messages is reached"),
            LimitKind::ToolCalls => write!(f, "the limit of {max} tool calls is used up"),
            LimitKind::Repeats => write!(f, "the same calls were asked for more than {max} times in a row"),
            LimitKind::Tokens => write!(f, "the limit of {max} tokens is used up ({} spent)", self.value),
            LimitKind::Cost => {
                let cents = format!("{max:.2}");
                let max = if cents.parse() == Ok(max) { cents } else { max.to_string() };
                write!(f, "the cost limit of ${max} is used up (${:.4} spent)", self.value)
            }
            LimitKind::WallTime => write!(f, "the wall_time limit of {max} s is used up"),
            LimitKind::WorkingTime => write!(f, "the working_time limit of {max} s is used up"),
        }
    }
}

impl std::error::Error for LimitReached {}

impl From<LimitReached> for ToolError {
    fn from(limit: LimitReached) -> Self {
        ToolError::of(ErrorKind::Limit, limit.to_string()).with_source(limit).in_runtime()
    }
}

/// What has been spent so far, as data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Model answers.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// Money, in US dollars.
    pub cost: f64,
    /// Time by the clock, in seconds.
    pub wall_time: f64,
    /// Of that, time spent waiting.
    pub waited: f64,
}

/// Limits together with what has been spent of them. Cloning shares the account.
#[derive(Debug, Clone)]
pub struct LimitScope {
    inner: Arc<Scope>,
}

#[derive(Debug)]
struct Scope {
    limits: RunLimits,
    clock: Clock,
    turns: AtomicU64,
    tool_calls: AtomicU64,
    usage: std::sync::Mutex<Usage>,
    /// Millionths of a dollar.
    cost: AtomicU64,
    parent: Option<LimitScope>,
}

/// When a call is stopped, and which limit of the run does it; `None` is the call's own time-out.
pub(crate) type Deadline = (Instant, Option<LimitReached>);

/// A call was admitted, and may run until this moment.
#[derive(Debug, Clone)]
pub(crate) struct Permit {
    /// When the call's own time-out ends it.
    pub(crate) own_end: Option<Instant>,
    /// When it is stopped, as things stand now.
    pub(crate) deadline: Option<Deadline>,
}

impl LimitScope {
    /// A fresh account.
    pub fn new(limits: RunLimits) -> Self {
        Self::resumed(limits, &Spent::default(), None)
    }

    /// An account that goes on from what was spent earlier, inside `parent`.
    pub fn resumed(limits: RunLimits, spent: &Spent, parent: Option<LimitScope>) -> Self {
        let around = parent.as_ref().map(|parent| parent.inner.clock.clone());
        let inner = Scope {
            limits,
            clock: Clock::resume(seconds(spent.wall_time), seconds(spent.waited), around),
            turns: AtomicU64::new(spent.turns),
            tool_calls: AtomicU64::new(spent.tool_calls),
            usage: std::sync::Mutex::new(spent.usage),
            cost: AtomicU64::new(micros(spent.cost)),
            parent,
        };
        LimitScope { inner: Arc::new(inner) }
    }

    /// An account inside this one: what it spends is spent here too.
    #[must_use]
    pub fn nested(&self, limits: RunLimits) -> Self {
        Self::resumed(limits, &Spent::default(), Some(self.clone()))
    }

    /// What has been spent.
    pub fn spent(&self) -> Spent {
        let scope = &self.inner;
        #[expect(clippy::cast_precision_loss, reason = "exact up to nine billion dollars and 285 years")]
        let units = |value: u64| value as f64 / 1e6;
        Spent {
            turns: scope.turns.load(Ordering::Relaxed),
            tool_calls: scope.tool_calls.load(Ordering::Relaxed),
            usage: *lock(&scope.usage),
            cost: units(scope.cost.load(Ordering::Relaxed)),
            wall_time: scope.clock.elapsed().as_secs_f64(),
            waited: scope.clock.idle().as_secs_f64(),
        }
    }

    /// How often in a row the same calls may be asked for: the least of this account and those around it.
    pub(crate) fn repeats(&self) -> Option<u64> {
        let outer = self.inner.parent.as_ref().and_then(LimitScope::repeats);
        self.inner.limits.repeats.into_iter().chain(outer).min()
    }

    /// The limits of this account alone.
    pub fn limits(&self) -> &RunLimits {
        &self.inner.limits
    }

    /// True when this account, or one around it, has a limit on its cost.
    pub(crate) fn limits_cost(&self) -> bool {
        self.inner.limits.cost.is_some() || self.inner.parent.as_ref().is_some_and(LimitScope::limits_cost)
    }

    /// Admits one call that may itself take no longer than `timeout`.
    pub(crate) fn admit_call(&self, timeout: Option<Duration>) -> Result<Permit, LimitReached> {
        let own_end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let deadline = self.deadline(own_end)?;
        self.count(LimitKind::ToolCalls, |scope| (&scope.tool_calls, scope.limits.tool_calls))?;
        Ok(Permit { own_end, deadline })
    }

    /// When a call that may itself run until `own_end` is stopped. It moves when waiting was booked in the
    /// meantime.
    pub(crate) fn deadline(&self, own_end: Option<Instant>) -> Result<Option<Deadline>, LimitReached> {
        self.earliest(own_end.map(|end| (end, None)), &[LimitKind::WallTime, LimitKind::WorkingTime])
    }

    /// When waiting for a person is over: working time stands still meanwhile, the clock does not.
    pub(crate) fn waiting_deadline(&self) -> Result<Option<Deadline>, LimitReached> {
        self.earliest(None, &[LimitKind::WallTime])
    }

    fn earliest(&self, own: Option<Deadline>, kinds: &[LimitKind]) -> Result<Option<Deadline>, LimitReached> {
        let mut deadline = own;
        self.visit(&mut |scope| {
            if let Some(time) = scope.time_deadline(kinds)?
                && deadline.as_ref().is_none_or(|(earliest, _)| time.0 < *earliest)
            {
                deadline = Some((time.0, Some(time.1)));
            }
            Ok(())
        })?;
        Ok(deadline)
    }

    /// An error when time, tokens or money are used up.
    pub(crate) fn check(&self) -> Result<(), LimitReached> {
        self.visit(&mut |scope| {
            scope.time_deadline(&[LimitKind::WallTime, LimitKind::WorkingTime])?;
            scope.check_spent()
        })
    }

    /// Admits one model request for a conversation of that many messages.
    pub(crate) fn admit_turn(&self, messages: usize) -> Result<(), LimitReached> {
        self.visit(&mut |scope| {
            scope.time_deadline(&[LimitKind::WallTime, LimitKind::WorkingTime])?;
            scope.check_spent()?;
            match scope.limits.messages {
                Some(max) if messages as u64 >= max => {
                    Err(reached(LimitKind::Messages, max as f64, messages as f64))
                }
                _ => Ok(()),
            }
        })?;
        self.count(LimitKind::Turns, |scope| (&scope.turns, scope.limits.turns))
    }

    /// Books tokens and money; an error when that goes over a limit. What was spent stays spent.
    pub fn spend(&self, usage: Usage, cost: f64) -> Result<(), LimitReached> {
        self.visit(&mut |scope| {
            *lock(&scope.usage) += usage;
            scope.cost.fetch_add(micros(cost), Ordering::Relaxed);
            Ok(())
        })?;
        self.visit(&mut Scope::check_spent)
    }

    /// The clock of this account; what is booked there is booked in those of the accounts around it too.
    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// This account and those around it, the outermost last.
    fn around(&self) -> impl Iterator<Item = &Scope> {
        std::iter::successors(Some(&*self.inner), |scope| Some(&*scope.parent.as_ref()?.inner))
    }

    /// Visits the outermost account first, so that the widest limit is the one reported.
    fn visit(&self, look: &mut dyn FnMut(&Scope) -> Result<(), LimitReached>) -> Result<(), LimitReached> {
        if let Some(parent) = &self.inner.parent {
            parent.visit(look)?;
        }
        look(&self.inner)
    }

    /// Adds one to a counter here and all around; none is added when any is full. The inner ones come first:
    /// what one of them refuses never stands in an outer one, where it would refuse somebody else.
    fn count(
        &self,
        kind: LimitKind,
        counter: fn(&Scope) -> (&AtomicU64, Option<u64>),
    ) -> Result<(), LimitReached> {
        let full = |before: u64, max: Option<u64>| {
            let max = max.filter(|max| before >= *max)?;
            Some(reached(kind, max as f64, before as f64 + 1.0))
        };
        self.visit(&mut |scope| {
            let (count, max) = counter(scope);
            full(count.load(Ordering::Relaxed), max).map_or(Ok(()), Err)
        })?;
        for (depth, scope) in self.around().enumerate() {
            let (count, max) = counter(scope);
            if let Some(limit) = full(count.fetch_add(1, Ordering::Relaxed), max) {
                for scope in self.around().take(depth + 1) {
                    counter(scope).0.fetch_sub(1, Ordering::Relaxed);
                }
                return Err(limit);
            }
        }
        Ok(())
    }
}

impl Scope {
    /// When the first of the time limits ends the run, if there is one; an error when it has already.
    fn time_deadline(&self, kinds: &[LimitKind]) -> Result<Option<(Instant, LimitReached)>, LimitReached> {
        if self.limits.wall_time.is_none() && self.limits.working_time.is_none() {
            return Ok(None);
        }
        let elapsed = self.clock.elapsed();
        let working = elapsed.saturating_sub(self.clock.idle());
        let mut first: Option<(Instant, LimitReached)> = None;
        for (kind, max, used) in [
            (LimitKind::WallTime, self.limits.wall_time, elapsed),
            (LimitKind::WorkingTime, self.limits.working_time, working),
        ] {
            let Some(max) = max.filter(|_| kinds.contains(&kind)) else { continue };
            let left = seconds(max).saturating_sub(used);
            // A caller is stopped only when the whole limit is used.
            let limit = reached(kind, max, used.as_secs_f64().max(max));
            if left.is_zero() {
                return Err(limit);
            }
            let end = Instant::now() + left;
            if first.as_ref().is_none_or(|(earliest, _)| end < *earliest) {
                first = Some((end, limit));
            }
        }
        Ok(first)
    }

    fn check_spent(&self) -> Result<(), LimitReached> {
        if let Some(max) = self.limits.tokens {
            let total = lock(&self.usage).total();
            if total > max {
                return Err(reached(LimitKind::Tokens, max as f64, total as f64));
            }
        }
        if let Some(max) = self.limits.cost {
            let cost = self.cost.load(Ordering::Relaxed);
            if cost > micros(max) {
                return Err(reached(LimitKind::Cost, max, cost as f64 / 1e6));
            }
        }
        Ok(())
    }
}

pub(crate) fn reached(limit: LimitKind, max: f64, value: f64) -> LimitReached {
    LimitReached { limit, max, value }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(FOREVER).min(FOREVER)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "negative amounts count as zero; huge ones saturate"
)]
fn micros(value: f64) -> u64 {
    (value.max(0.0) * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(limits: RunLimits) -> LimitScope {
        LimitScope::new(limits)
    }

    #[tokio::test(start_paused = true)]
    async fn each_limit_is_named_when_it_is_reached() {
        let calls = scope(RunLimits { tool_calls: Some(1), ..RunLimits::default() });
        assert!(calls.admit_call(None).is_ok());
        assert_eq!(calls.admit_call(None).unwrap_err().to_string(), "the limit of 1 tool calls is used up");
        assert_eq!(calls.spent().tool_calls, 1);

        let turns = scope(RunLimits { turns: Some(0), ..RunLimits::default() });
        assert_eq!(turns.admit_turn(0).unwrap_err().limit, LimitKind::Turns);
        let messages = scope(RunLimits { messages: Some(5), ..RunLimits::default() });
        assert!(messages.admit_turn(4).is_ok());
        assert_eq!(messages.admit_turn(5).unwrap_err().limit, LimitKind::Messages);

        let tokens = scope(RunLimits { tokens: Some(3), ..RunLimits::default() });
        let usage = Usage { input_tokens: 1, output_tokens: 1, ..Usage::default() };
        assert!(tokens.spend(usage, 0.0).is_ok());
        assert_eq!(tokens.spend(usage, 0.0).unwrap_err().limit, LimitKind::Tokens);

        let cost = scope(RunLimits { cost: Some(0.5), ..RunLimits::default() });
        assert!(cost.spend(Usage::default(), 0.5).is_ok());
        assert_eq!(cost.spend(Usage::default(), 0.01).unwrap_err().limit, LimitKind::Cost);

        let wall = scope(RunLimits { wall_time: Some(10.0), ..RunLimits::default() });
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(wall.admit_call(None).unwrap_err().limit, LimitKind::WallTime);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_given_up_is_not_booked() {
        let limits = scope(RunLimits { working_time: Some(10.0), ..RunLimits::default() });
        let announced = limits.clock().idle_guard();
        announced.announce(Duration::from_secs(3600));
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(announced);
        assert_eq!(limits.spent().waited, 2.0);
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(limits.check().unwrap_err().limit, LimitKind::WorkingTime);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_not_working() {
        let limits = scope(RunLimits { working_time: Some(10.0), ..RunLimits::default() });
        let waiting = limits.clock().idle_guard();
        waiting.announce(Duration::from_secs(8));
        tokio::time::advance(Duration::from_secs(15)).await;
        drop(waiting);
        let permit = limits.admit_call(None).unwrap();
        let (deadline, limit) = permit.deadline.unwrap();
        assert_eq!((deadline - Instant::now()).as_secs(), 3);
        // By the time it stops the call, all of it is used.
        assert_eq!(limit.unwrap(), reached(LimitKind::WorkingTime, 10.0, 10.0));
    }

    #[test]
    fn a_limit_of_money_is_told_to_the_last_digit() {
        let told = |max| reached(LimitKind::Cost, max, 0.0123).to_string();
        assert_eq!(told(0.001), "the cost limit of $0.001 is used up ($0.0123 spent)");
        assert_eq!(told(0.5), "the cost limit of $0.50 is used up ($0.0123 spent)");
    }

    #[tokio::test(start_paused = true)]
    async fn a_nested_scope_spends_from_both_and_a_refusal_spends_nothing() {
        let outer = scope(RunLimits { tool_calls: Some(2), ..RunLimits::default() });
        let inner = outer.nested(RunLimits { tool_calls: Some(1), ..RunLimits::default() });
        assert!(inner.admit_call(None).is_ok());
        assert_eq!(inner.admit_call(None).unwrap_err().max, 1.0);
        assert_eq!((outer.spent().tool_calls, inner.spent().tool_calls), (1, 1));
        assert!(outer.admit_call(None).is_ok());
        assert_eq!(outer.admit_call(None).unwrap_err().max, 2.0);
        assert_eq!(outer.spent().tool_calls, 2);
    }

    #[tokio::test]
    async fn what_an_inner_scope_refuses_takes_nothing_from_its_neighbours() {
        let outer = scope(RunLimits { tool_calls: Some(20_000), ..RunLimits::default() });
        let refusing = outer.nested(RunLimits { tool_calls: Some(0), ..RunLimits::default() });
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(refusing.admit_call(None).is_err());
                }
            });
            let highest = (0..20_000).map(|_| outer.admit_call(None).map(|_| outer.spent().tool_calls));
            let highest: Result<Vec<u64>, _> = highest.collect();
            done.store(true, Ordering::Relaxed);
            // Nobody ever sees a call that was not made.
            assert_eq!(highest.unwrap(), (1..=20_000).collect::<Vec<_>>());
        });
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_deadline_wins() {
        let limits = scope(RunLimits { wall_time: Some(10.0), ..RunLimits::default() });
        let own = limits.admit_call(Some(Duration::from_secs(5))).unwrap().deadline.unwrap();
        assert!(own.1.is_none());
        let run = limits.admit_call(Some(Duration::from_secs(50))).unwrap().deadline.unwrap();
        assert_eq!(run.1.unwrap().limit, LimitKind::WallTime);
    }
}
