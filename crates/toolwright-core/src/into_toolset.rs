//! What a set of tools can be made of: single tools, sets, arrays, lists and tuples of these.

use crate::tool::Tool;
use crate::toolset::{Toolset, ToolsetError};

/// Makes a [`Toolset`]. A run is built with anything that implements it, and `build` reports a clash.
///
/// ```
/// use toolwright_core::{IntoToolset as _, ToolDef, ToolSpec, Toolset, ToolsetError};
/// # fn tool(name: &str) -> ToolDef { ToolDef::dynamic(ToolSpec::new(name, "d"), |_, _| async { "ok" }) }
///
/// let tools = (tool("add"), [tool("divide"), tool("round")], Toolset::new()).into_toolset()?;
/// assert_eq!(tools.names().collect::<Vec<_>>(), ["add", "divide", "round"]);
///
/// let clash = [tool("add"), tool("add")].into_toolset().unwrap_err();
/// assert!(matches!(clash, ToolsetError::Clash { .. }));
/// # Ok::<(), ToolsetError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of tools",
    label = "neither a tool nor a set of tools",
    note = "give a tool (`add()`, with the parentheses), a `Toolset`, or an array, a `Vec` or a tuple of these"
)]
pub trait IntoToolset {
    /// The tools, in order. An error when two have one name, or one cannot be offered to models.
    fn into_toolset(self) -> Result<Toolset, ToolsetError>;
}

impl<T: Tool + 'static> IntoToolset for T {
    fn into_toolset(self) -> Result<Toolset, ToolsetError> {
        Toolset::new().with(self)
    }
}

impl IntoToolset for Toolset {
    fn into_toolset(self) -> Result<Toolset, ToolsetError> {
        Ok(self)
    }
}

impl IntoToolset for &Toolset {
    fn into_toolset(self) -> Result<Toolset, ToolsetError> {
        Ok(self.clone())
    }
}

/// What `#[toolset]` gives.
impl IntoToolset for Result<Toolset, ToolsetError> {
    fn into_toolset(self) -> Result<Toolset, ToolsetError> {
        self
    }
}

impl<T: IntoToolset, const N: usize> IntoToolset for [T; N] {
    fn into_toolset(self) -> Result<Toolset, ToolsetError> {
        all(self)
    }
}

impl<T: IntoToolset> IntoToolset for Vec<T> {
    fn into_toolset(self) -> Result<Toolset, ToolsetError> {
        all(self)
    }
}

fn all<T: IntoToolset>(sets: impl IntoIterator<Item = T>) -> Result<Toolset, ToolsetError> {
    sets.into_iter().try_fold(Toolset::new(), |tools, set| tools.combined(set.into_toolset()?))
}

macro_rules! tuples {
    ($($name:ident)*) => {
        #[allow(non_snake_case, reason = "the values are called like their types")]
        impl<$($name: IntoToolset),*> IntoToolset for ($($name,)*) {
            fn into_toolset(self) -> Result<Toolset, ToolsetError> {
                let ($($name,)*) = self;
                Toolset::new()$(.combined($name.into_toolset()?)?)*.into_toolset()
            }
        }
    };
}
tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);
