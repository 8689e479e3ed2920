//! What one evaluation may spend: steps, bytes, depth, and until when. Every allocation that grows with
//! the input asks here first; a limit once reached ends the evaluation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::error::{Error, ErrorKind, LimitKind};

/// Bounds of one evaluation. The defaults leave room for anything a person writes by hand and end abuse
/// within a tenth of a second and 64 MiB.
#[derive(Debug, Clone)]
pub struct EvalLimits {
    /// Units of work: about one for each operator, call or loop round, more for work on long data.
    pub steps: u64,
    /// Bytes allocated in total, counted before they are allocated and never given back.
    pub bytes: u64,
    /// Levels of nesting: of code inside running calls, and of data that is compared, printed or converted.
    pub depth: u32,
    /// Bytes of a text that is the result.
    pub output: u64,
    /// Decimal digits of an integer.
    pub digits: u32,
    /// Set it to true and the evaluation ends with [`ErrorKind::Cancelled`].
    pub cancel: Option<Arc<AtomicBool>>,
    /// The moment after which the evaluation ends with [`ErrorKind::Cancelled`].
    pub deadline: Option<Instant>,
}

impl Default for EvalLimits {
    fn default() -> Self {
        Self {
            steps: 2_000_000,
            bytes: 24 << 20,
            depth: 200,
            output: 16 << 20,
            digits: 40_000,
            cancel: None,
            deadline: None,
        }
    }
}

/// How many steps pass between two looks at the clock and the cancel flag.
const SLICE: u64 = 2_048;

/// What every object costs beside its contents: reference counts, length, the allocator's own bookkeeping.
const OVERHEAD: u64 = 48;

/// Steps an allocation takes, whatever its size.
const ALLOCATION: u64 = 6;

/// What is left of [`EvalLimits`] while an evaluation runs.
pub(crate) struct Fuel<'a> {
    limits: &'a EvalLimits,
    slice: u64,
    steps: u64,
    bytes: u64,
    depth: u32,
}

impl<'a> Fuel<'a> {
    pub(crate) fn new(limits: &'a EvalLimits) -> Self {
        Self { limits, slice: 0, steps: limits.steps, bytes: limits.bytes, depth: 0 }
    }

    /// Pays for `cost` steps of work.
    #[inline]
    pub(crate) fn spend(&mut self, cost: u64) -> Result<(), Error> {
        if let Some(rest) = self.slice.checked_sub(cost) {
            self.slice = rest;
            return Ok(());
        }
        self.refill(cost)
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self, cost: u64) -> Result<(), Error> {
        if self.limits.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Error::new(ErrorKind::Cancelled, "the evaluation was cancelled"));
        }
        if self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::new(ErrorKind::Cancelled, "the evaluation ran past its deadline")
                .with_class("TimeoutError"));
        }
        let want = cost.saturating_sub(self.slice);
        if want > self.steps {
            self.steps = 0;
            self.slice = 0;
            return Err(Error::limited(
                LimitKind::Steps,
                format!("the evaluation needs more than {} steps", self.limits.steps),
            ));
        }
        self.steps -= want;
        self.slice = self.steps.min(SLICE);
        self.steps -= self.slice;
        Ok(())
    }

    /// Pays for an object of `count` bytes that is about to be allocated, and for the work of filling it.
    #[inline]
    pub(crate) fn allocate(&mut self, count: usize) -> Result<(), Error> {
        let count = (count as u64).saturating_add(OVERHEAD);
        match self.bytes.checked_sub(count) {
            Some(rest) => self.bytes = rest,
            None => return Err(self.out_of_bytes()),
        }
        // An allocation and its release take as long as a handful of operators.
        self.spend(ALLOCATION + (count >> 6))
    }

    /// Pays for `count` values of `size` bytes.
    #[inline]
    pub(crate) fn allocate_many(&mut self, count: usize, size: usize) -> Result<(), Error> {
        self.allocate(count.saturating_mul(size))
    }

    #[cold]
    fn out_of_bytes(&self) -> Error {
        Error::limited(
            LimitKind::Bytes,
            format!("the evaluation needs more than {} bytes", self.limits.bytes),
        )
    }

    /// Goes one level deeper; [`leave`](Self::leave) comes back.
    #[inline]
    pub(crate) fn enter(&mut self) -> Result<(), Error> {
        self.enter_by(1)
    }

    /// Goes `levels` deeper at once; [`leave_by`](Self::leave_by) comes back.
    #[inline]
    pub(crate) fn enter_by(&mut self, levels: u32) -> Result<(), Error> {
        let depth = self.depth.saturating_add(levels);
        if depth > self.limits.depth {
            return Err(Error::limited(
                LimitKind::Depth,
                format!("calls or data are nested more than {} deep", self.limits.depth),
            ));
        }
        self.depth = depth;
        Ok(())
    }

    #[inline]
    pub(crate) fn leave(&mut self) {
        self.leave_by(1);
    }

    #[inline]
    pub(crate) fn leave_by(&mut self, levels: u32) {
        self.depth = self.depth.saturating_sub(levels);
    }

    /// Checks the size of an integer of `bits` bits before it is computed.
    pub(crate) fn integer(&mut self, bits: u64) -> Result<(), Error> {
        // A decimal digit holds log2(10) = 3.3219 bits.
        if bits > u64::from(self.limits.digits).saturating_mul(33_220) / 10_000 {
            return Err(Error::limited(
                LimitKind::Digits,
                format!("an integer would have more than {} digits", self.limits.digits),
            ));
        }
        self.allocate((bits / 8) as usize)
    }

    pub(crate) fn output(&self, bytes: usize) -> Result<(), Error> {
        if bytes as u64 > self.limits.output {
            return Err(Error::limited(
                LimitKind::Output,
                format!("the result is larger than {} bytes", self.limits.output),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_run_out_exactly_once_spent() {
        let limits = EvalLimits { steps: 5_000, ..EvalLimits::default() };
        let mut fuel = Fuel::new(&limits);
        for _ in 0..5_000 {
            fuel.spend(1).unwrap();
        }
        assert_eq!(fuel.spend(1).unwrap_err().limit(), Some(LimitKind::Steps));
    }

    #[test]
    fn one_large_cost_is_refused_whole() {
        let limits = EvalLimits { steps: 5_000, ..EvalLimits::default() };
        assert!(Fuel::new(&limits).spend(5_001).is_err());
        assert!(Fuel::new(&limits).spend(5_000).is_ok());
    }

    #[test]
    fn bytes_are_refused_before_they_exist() {
        let limits = EvalLimits { bytes: 1_000, ..EvalLimits::default() };
        let mut fuel = Fuel::new(&limits);
        fuel.allocate(900).unwrap();
        assert_eq!(fuel.allocate(usize::MAX).unwrap_err().limit(), Some(LimitKind::Bytes));
    }

    #[test]
    fn a_raised_flag_cancels() {
        let flag = Arc::new(AtomicBool::new(true));
        let limits = EvalLimits { cancel: Some(flag), ..EvalLimits::default() };
        assert_eq!(Fuel::new(&limits).spend(1).unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
