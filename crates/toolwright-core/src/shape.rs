//! How deep and how rich a JSON document is, seen without building anything from it.

/// The shape of a document, by its brackets and commas outside of texts. Of what is no JSON, it is a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonShape {
    /// How deep it is nested.
    pub depth: usize,
    /// How many values it has, or a few more. Each takes many times the byte that it may be written with.
    pub values: usize,
}

impl JsonShape {
    /// Looks at a document.
    ///
    /// ```
    /// let shape = toolwright_core::JsonShape::of(br#"{"a": [1, 2], "b": "[,\",["}"#);
    /// assert_eq!((shape.depth, shape.values), (2, 5));
    /// ```
    pub fn of(document: &[u8]) -> Self {
        let (mut shape, mut open) = (JsonShape { depth: 0, values: 1 }, 0_usize);
        let mut bytes = document.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' => {
                    let mut escaped = false;
                    // To the end of the text.
                    bytes.find(|byte| {
                        let plain = !escaped;
                        escaped = plain && **byte == b'\\';
                        plain && **byte == b'"'
                    });
                }
                b'{' | b'[' => {
                    open += 1;
                    shape.depth = shape.depth.max(open);
                    shape.values += 1;
                }
                b'}' | b']' => open = open.saturating_sub(1),
                b',' => shape.values += 1,
                _ => {}
            }
        }
        shape
    }
}
