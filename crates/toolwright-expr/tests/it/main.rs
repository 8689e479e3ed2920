//! The crate seen from outside, in one binary.

mod attacks;
mod differential;
mod generate;
mod properties;
mod reference;
mod scripts;
