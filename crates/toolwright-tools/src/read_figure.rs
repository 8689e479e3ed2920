//! `read_figure`: one figure of a document, or one of its pages as a picture.

use toolwright_core::{Content, ErrorKind, ToolContext, ToolError, ToolOutput, WorkspacePath, tool};
use toolwright_documents::{Figure, FigureDetail, PageRange, ReadOptions, render};

use crate::document;
use crate::options::{Call, Options, within_time};
use crate::paths;

/// How finely a page is drawn, in dots per inch.
const RESOLUTION: u16 = 150;

/// Look at one figure of a document that read_file names.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub async fn read_figure(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The document.
    #[tool(alias("file_path", "filename"))]
    path: WorkspacePath,
    /// Its name, for example p5.f2; p5 is all of page 5.
    figure: String,
    /// The password of the document.
    password: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let call = &Call::new(context, options);
    let page = page_of(&figure).ok_or_else(|| {
        let message = format!("`figure` must be a name such as p5.f2 or p5, got `{}`", figure.escape_debug());
        ToolError::invalid(message)
    })?;
    let is_page = !figure.contains('.') || figure.ends_with(".picture");
    let bytes = paths::read(call, &path).await?;
    let wanted = ReadOptions {
        pages: Some(PageRange { first: page, last: page }),
        password,
        figures: FigureDetail::Encoded,
        page_pictures: is_page.then_some(RESOLUTION),
        ..document::options_for(&path)
    };
    let found = document::open(call, &path, &bytes, wanted).await?;
    let name = if is_page { format!("p{page}.picture") } else { figure };
    let names: Vec<String> = found.figures.iter().map(|figure| figure.id.clone()).collect();
    let Some(figure) = found.figures.into_iter().find(|figure| figure.id == name) else {
        let error = ToolError::invalid(format!("{path} has no figure `{}`", name.escape_debug()));
        return Err(match names.as_slice() {
            _ if is_page => error.hint("only pages of a PDF can be drawn"),
            [] => error.hint(format!("page {page} has no figures")),
            names => error.hint(format!("page {page} has {}", names.join(", "))),
        });
    };
    let about = render::placeholder(&figure);
    let shown = tokio::task::spawn_blocking(move || {
        let Figure { data, .. } = figure;
        document::fit(data, document::MAX_SIDE)
    });
    let picture =
        shown.await.map_err(|error| ToolError::new("the figure cannot be shown").with_source(error))?;
    let picture = picture.ok_or_else(|| {
        ToolError::of(ErrorKind::Limit, format!("figure {name} of {path} is too large or cannot be decoded"))
            .hint(format!("draw its page: `figure` p{page}"))
    })?;
    let document::ScaledPicture { mime, bytes, width, height } = picture;
    let about = format!("{about} shown as {width}x{height}\n");
    Ok(ToolOutput::blocks([Content::text(about), Content::image(mime, &bytes)]))
}

/// The page in the name of a figure.
fn page_of(name: &str) -> Option<u32> {
    let (page, rest) = name.strip_prefix('p')?.split_once('.').unwrap_or((name.get(1..)?, "f1"));
    let is_figure = rest == "picture" || rest.strip_prefix('f').is_some_and(|n| n.parse::<u32>().is_ok());
    page.parse().ok().filter(|page| *page > 0 && is_figure)
}

#[cfg(test)]
mod tests {
    use super::page_of;

    #[test]
    fn a_figure_is_named_by_its_page() {
        for (name, page) in [
            ("p5.f2", Some(5)),
            ("p5", Some(5)),
            ("p5.picture", Some(5)),
            ("p0.f1", None),
            ("5", None),
            ("p5.b3", None),
            ("", None),
            ("p", None),
            ("p5.f", None),
        ] {
            assert_eq!(page_of(name), page, "{name}");
        }
    }
}
