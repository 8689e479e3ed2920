//! Hashable values as keys: each carries its hash, computed once and metered by `ops::key`.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::LazyLock;

use indexmap::Equivalent;
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};

use super::Value;
use super::object::ObjectData;
use super::text::Text;

/// A hashable value with its hash, computed once and metered by `ops::key`.
#[derive(Clone)]
pub(crate) struct Key {
    hash: u64,
    pub(crate) value: Value,
}

impl Key {
    pub(crate) fn text(text: impl Into<Text>) -> Key {
        let text = text.into();
        Key { hash: hash_text(&text), value: Value::Str(text) }
    }

    /// Pairs a value with a hash made by the functions below.
    pub(crate) fn with_hash(value: Value, hash: u64) -> Key {
        Key { hash, value }
    }

    pub(crate) fn hash_code(&self) -> u64 {
        self.hash
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.hash == other.hash && same_key(&self.value, &other.value)
    }
}

impl Eq for Key {}

/// Equality of hashable values. Depth is bounded because `ops::key` bounded it when hashing.
fn same_key(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => **a == **b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| same_key(x, y))
        }
        (Value::Bytes(a), Value::Bytes(b)) => **a == **b,
        (Value::Set(a), Value::Set(b)) => {
            let (a, b) = (a.snapshot(), b.snapshot());
            a.len() == b.len() && a.iter().all(|key| b.contains(key))
        }
        (Value::Range(a), Value::Range(b)) => crate::ops::same_range(a, b),
        (Value::Object(a), Value::Object(b)) => match (a.data(), b.data()) {
            (ObjectData::Complex { re, im }, ObjectData::Complex { re: r, im: i }) => {
                // What is not a number is itself, as with floats; otherwise equal hashes would pile up.
                let same = |a: &f64, b: &f64| a == b || a.to_bits() == b.to_bits();
                same(re, r) && same(im, i)
            }
            (ObjectData::Struct(a), ObjectData::Struct(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| same_key(value, other)))
            }
            (ObjectData::Slice(a), ObjectData::Slice(b)) => a.iter().zip(b).all(|(x, y)| same_key(x, y)),
            _ => left.is(right),
        },
        _ if left.is(right) => true,
        _ => crate::ops::number::same(left, right),
    }
}

/// Looks a text up among keys without making a value of it.
pub(crate) struct TextKey<'a> {
    hash: u64,
    text: &'a str,
}

impl<'a> TextKey<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        TextKey { hash: hash_text(text), text }
    }

    pub(crate) fn with_hash(text: &'a str, hash: u64) -> Self {
        TextKey { hash, text }
    }
}

impl Hash for TextKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<Key> for TextKey<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.hash == key.hash && matches!(&key.value, Value::Str(text) if text.as_str() == self.text)
    }
}

static SEED: LazyLock<foldhash::fast::RandomState> = LazyLock::new(foldhash::fast::RandomState::default);

/// Hashes are seeded per process, so that an attacker cannot prepare colliding keys.
pub(crate) fn hash_text(text: &str) -> u64 {
    SEED.hash_one(text.as_bytes())
}

pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    SEED.hash_one((1u8, bytes))
}

pub(crate) fn hash_int(number: i64) -> u64 {
    SEED.hash_one(number)
}

pub(crate) fn hash_big(number: &BigInt) -> u64 {
    match number.to_i64() {
        Some(small) => hash_int(small),
        None => SEED.hash_one(number),
    }
}

/// Equal numbers hash equally, whatever their type.
pub(crate) fn hash_float(number: f64) -> u64 {
    if number.is_finite() && number.fract() == 0.0 {
        if number.abs() < 9.0e18 {
            return hash_int(number as i64);
        }
        if let Some(big) = BigInt::from_f64(number) {
            return hash_big(&big);
        }
    }
    SEED.hash_one((2u8, number.to_bits()))
}

pub(crate) fn hash_mix(tag: u8, parts: &[u64]) -> u64 {
    SEED.hash_one((tag, parts))
}

/// The hasher of maps whose keys carry their hash.
#[derive(Clone, Default)]
pub(crate) struct Prehashed;

impl BuildHasher for Prehashed {
    type Hasher = PrehashedHasher;
    fn build_hasher(&self) -> PrehashedHasher {
        PrehashedHasher(0)
    }
}

pub(crate) struct PrehashedHasher(u64);

impl Hasher for PrehashedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
}
