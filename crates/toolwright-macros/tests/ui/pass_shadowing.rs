//! Names a user may have do not meet those of the generated code.

#![deny(warnings, missing_docs, unreachable_pub, clippy::all)]

mod mine {
    use toolwright_core::tool;

    #[derive(Debug)]
    #[allow(dead_code)]
    pub(crate) enum Result {
        Ok,
        Err,
    }

    pub(crate) struct Box;
    pub(crate) struct Arc;
    pub(crate) struct String;
    pub(crate) struct Value;
    pub(crate) struct Vec;
    pub(crate) struct ToolDef;
    pub(crate) struct Option;

    /// Does it.
    ///
    /// # Arguments
    ///
    /// * `arguments` - A number.
    #[tool(timeout = 1, cache = 2, rate_limit = "1/s", category = "c", title = "t", read_only)]
    pub(crate) async fn work(arguments: i64, #[tool(default = 5, description = "d")] context: i64) -> i64 {
        let _ = (Box, Arc, String, Value, Vec, ToolDef, Option, Result::Ok);
        arguments + context
    }

    /// Does it.
    #[tool]
    pub(crate) fn plain() {}
}

fn main() {
    let work = mine::work();
    let plain = mine::plain();
    let _ = (work, plain, mine::work::run(1, 2));
}
