//! Locks whose data stays usable after a panic: each holds plain data that is complete between two
//! statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after another holder panicked.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_another_holder_does_not_lock_the_data_away() {
        let mutex = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                *lock(&mutex) += 1;
                let _held = lock(&mutex);
                panic!("while holding it");
            });
            holder.join().is_err()
        });
        assert!(panicked && mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 2);
    }
}
