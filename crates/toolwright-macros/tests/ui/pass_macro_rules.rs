//! Tools written by another macro.

macro_rules! tools {
    ($($name:ident: $ty:ty => $text:literal),*) => {
        $(
            #[doc = $text]
            #[toolwright_core::tool]
            async fn $name(
                ctx: &toolwright_core::ToolContext,
                #[doc = $text] value: $ty,
            ) -> $ty {
                let _ = ctx;
                value
            }
        )*
    };
}

tools!(number: i64 => "A number.", text: Option<String> => "Text.");

fn main() {
    let _ = (number(), text());
}
