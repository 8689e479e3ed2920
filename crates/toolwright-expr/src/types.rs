//! The types a program can name or meet, with their place in Python's class tree.
//! Which methods a type has is in `builtins`; here are names and ancestry only.

use crate::value::{ObjectData, Value, ViewKind};

/// A type or exception class, as a value of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type(u8);

macro_rules! types {
    ($($constant:ident $name:literal $base:ident),* $(,)?) => {
        #[expect(
            non_camel_case_types,
            clippy::upper_case_acronyms,
            reason = "these variants only number the constants below"
        )]
        enum Index { $($constant),* }

        #[expect(dead_code, reason = "most exception classes are only ever reached by name")]
        impl Type {
            $(pub(crate) const $constant: Type = Type(Index::$constant as u8);)*
        }

        const TYPES: &[(&str, Type)] = &[$(($name, Type::$base)),*];
    };
}

types! {
    OBJECT "object" OBJECT,
    NONE "NoneType" OBJECT,
    INT "int" OBJECT,
    BOOL "bool" INT,
    FLOAT "float" OBJECT,
    COMPLEX "complex" OBJECT,
    STR "str" OBJECT,
    BYTES "bytes" OBJECT,
    LIST "list" OBJECT,
    TUPLE "tuple" OBJECT,
    DICT "dict" OBJECT,
    SET "set" OBJECT,
    FROZENSET "frozenset" OBJECT,
    RANGE "range" OBJECT,
    SLICE "slice" OBJECT,
    ELLIPSIS "ellipsis" OBJECT,
    TYPE "type" OBJECT,
    BUILTIN "builtin_function_or_method" OBJECT,
    METHOD_DESCRIPTOR "method_descriptor" OBJECT,
    FUNCTION "function" OBJECT,
    GENERATOR "generator" OBJECT,
    DICT_KEYS "dict_keys" OBJECT,
    DICT_VALUES "dict_values" OBJECT,
    DICT_ITEMS "dict_items" OBJECT,
    ZIP "zip" OBJECT,
    MAP "map" OBJECT,
    FILTER "filter" OBJECT,
    ENUMERATE "enumerate" OBJECT,
    REVERSED "reversed" OBJECT,
    STRUCT "StarlarkStruct" OBJECT,
    YAML "LazyFormatter" OBJECT,
    CELL "cell" OBJECT,
    BASE_EXCEPTION "BaseException" OBJECT,
    EXCEPTION "Exception" BASE_EXCEPTION,
    ARITHMETIC_ERROR "ArithmeticError" EXCEPTION,
    ASSERTION_ERROR "AssertionError" EXCEPTION,
    ATTRIBUTE_ERROR "AttributeError" EXCEPTION,
    BUFFER_ERROR "BufferError" EXCEPTION,
    EOF_ERROR "EOFError" EXCEPTION,
    FLOATING_POINT_ERROR "FloatingPointError" ARITHMETIC_ERROR,
    GENERATOR_EXIT "GeneratorExit" BASE_EXCEPTION,
    IMPORT_ERROR "ImportError" EXCEPTION,
    LOOKUP_ERROR "LookupError" EXCEPTION,
    INDEX_ERROR "IndexError" LOOKUP_ERROR,
    KEY_ERROR "KeyError" LOOKUP_ERROR,
    KEYBOARD_INTERRUPT "KeyboardInterrupt" BASE_EXCEPTION,
    MEMORY_ERROR "MemoryError" EXCEPTION,
    NAME_ERROR "NameError" EXCEPTION,
    UNBOUND_LOCAL_ERROR "UnboundLocalError" NAME_ERROR,
    OS_ERROR "OSError" EXCEPTION,
    OVERFLOW_ERROR "OverflowError" ARITHMETIC_ERROR,
    REFERENCE_ERROR "ReferenceError" EXCEPTION,
    RUNTIME_ERROR "RuntimeError" EXCEPTION,
    NOT_IMPLEMENTED_ERROR "NotImplementedError" RUNTIME_ERROR,
    STOP_ITERATION "StopIteration" EXCEPTION,
    SYNTAX_ERROR "SyntaxError" EXCEPTION,
    INDENTATION_ERROR "IndentationError" SYNTAX_ERROR,
    TAB_ERROR "TabError" INDENTATION_ERROR,
    SYSTEM_ERROR "SystemError" EXCEPTION,
    SYSTEM_EXIT "SystemExit" BASE_EXCEPTION,
    TYPE_ERROR "TypeError" EXCEPTION,
    VALUE_ERROR "ValueError" EXCEPTION,
    UNICODE_ERROR "UnicodeError" VALUE_ERROR,
    UNICODE_DECODE_ERROR "UnicodeDecodeError" UNICODE_ERROR,
    UNICODE_ENCODE_ERROR "UnicodeEncodeError" UNICODE_ERROR,
    UNICODE_TRANSLATE_ERROR "UnicodeTranslateError" UNICODE_ERROR,
    ZERO_DIVISION_ERROR "ZeroDivisionError" ARITHMETIC_ERROR,
    WARNING "Warning" EXCEPTION,
    BYTES_WARNING "BytesWarning" WARNING,
    DEPRECATION_WARNING "DeprecationWarning" WARNING,
    FUTURE_WARNING "FutureWarning" WARNING,
    IMPORT_WARNING "ImportWarning" WARNING,
    PENDING_DEPRECATION_WARNING "PendingDeprecationWarning" WARNING,
    RUNTIME_WARNING "RuntimeWarning" WARNING,
    SYNTAX_WARNING "SyntaxWarning" WARNING,
    UNICODE_WARNING "UnicodeWarning" WARNING,
    USER_WARNING "UserWarning" WARNING,
}

impl Type {
    /// The type's name, as Python spells it.
    pub fn name(self) -> &'static str {
        TYPES.get(usize::from(self.0)).map_or("object", |(name, _)| name)
    }

    /// Number of types, for tables indexed by [`index`](Self::index).
    pub(crate) const COUNT: usize = TYPES.len();

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Whether this is `ancestor` or derived from it.
    pub(crate) fn derives_from(self, ancestor: Type) -> bool {
        let mut current = self;
        loop {
            if current == ancestor {
                return true;
            }
            match TYPES.get(usize::from(current.0)) {
                Some((_, base)) if *base != current => current = *base,
                _ => return false,
            }
        }
    }

    pub(crate) fn is_exception(self) -> bool {
        self.derives_from(Type::BASE_EXCEPTION)
    }

    /// Every exception class, plus Python's two other names for `OSError`.
    pub(crate) fn exceptions() -> impl Iterator<Item = (&'static str, Type)> {
        let classes = (0..TYPES.len()).map(|index| Type(index as u8)).filter(|class| class.is_exception());
        classes
            .map(|class| (class.name(), class))
            .chain([("EnvironmentError", Type::OS_ERROR), ("IOError", Type::OS_ERROR)])
    }

    /// The type of a value.
    pub fn of(value: &Value) -> Type {
        match value {
            Value::None => Type::NONE,
            Value::Bool(_) => Type::BOOL,
            Value::Int(_) | Value::Big(_) => Type::INT,
            Value::Float(_) => Type::FLOAT,
            Value::Str(_) => Type::STR,
            Value::Bytes(_) => Type::BYTES,
            Value::List(_) => Type::LIST,
            Value::Tuple(_) => Type::TUPLE,
            Value::Dict(_) => Type::DICT,
            Value::Set(set) if set.is_frozen() => Type::FROZENSET,
            Value::Set(_) => Type::SET,
            Value::Range(_) => Type::RANGE,
            Value::Ellipsis => Type::ELLIPSIS,
            Value::Type(_) => Type::TYPE,
            Value::Builtin(_) => Type::BUILTIN,
            Value::Unbound => Type::OBJECT,
            Value::Object(object) => match object.data() {
                ObjectData::Complex { .. } => Type::COMPLEX,
                ObjectData::Slice(_) => Type::SLICE,
                ObjectData::View(ViewKind::Keys, _) => Type::DICT_KEYS,
                ObjectData::View(ViewKind::Values, _) => Type::DICT_VALUES,
                ObjectData::View(ViewKind::Items, _) => Type::DICT_ITEMS,
                ObjectData::Iter(kind, _) => *kind,
                ObjectData::Generator(_) => Type::GENERATOR,
                ObjectData::Closure(_) | ObjectData::Host(_) => Type::FUNCTION,
                ObjectData::Method(..) => Type::BUILTIN,
                ObjectData::Unbound(..) => Type::METHOD_DESCRIPTOR,
                ObjectData::Struct(_) => Type::STRUCT,
                ObjectData::Exception(class, _) => *class,
                ObjectData::Yaml(..) => Type::YAML,
                ObjectData::Cell(_) => Type::CELL,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestry_follows_python() {
        assert!(Type::BOOL.derives_from(Type::INT));
        assert!(Type::UNICODE_DECODE_ERROR.derives_from(Type::VALUE_ERROR));
        assert!(!Type::INT.derives_from(Type::BOOL));
        assert_eq!(Type::exceptions().count(), 47);
    }
}
