//! The contract through its public door.

mod reference;
