//! Office files: packages of XML parts, workbooks, and compound files.

pub(crate) mod archive;
pub(crate) mod docx;
pub(crate) mod epub;
pub(crate) mod msg;
pub(crate) mod odt;
pub(crate) mod package;
pub(crate) mod pptx;
pub(crate) mod sheet;
pub(crate) mod xml;

use crate::model::{Figure, Info};
use crate::options::{FigureDetail, ReadingState};
use package::Package;

/// A picture of a package as a figure; `None` for anything but a picture that can be shown.
fn figure(
    package: &mut Package,
    path: &str,
    caption: Option<String>,
    reading: &mut ReadingState<'_>,
) -> Option<Figure> {
    if reading.options.figures == FigureDetail::None {
        return None;
    }
    let data = package.part(path, reading).ok()??;
    let (media_type, width, height) = crate::text::image::measure(&data)?;
    let encoded = reading.options.figures == FigureDetail::Encoded;
    Some(Figure {
        width,
        height,
        media_type: if encoded { media_type.to_owned() } else { String::new() },
        caption: caption.filter(|caption| !caption.trim().is_empty()),
        data: if encoded { data } else { Vec::new() },
        ..Figure::default()
    })
}

/// Title, author and language from the parts in which packages keep them.
fn about(package: &mut Package, path: &str, reading: &mut ReadingState<'_>) -> Info {
    let mut info = Info::default();
    let Ok(Some(tree)) = package.xml(path, reading) else { return info };
    let text = |name: &str| {
        let found = tree.find(tree.root(), name)?;
        let text = tree.text(found).split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    };
    info.title = text("title");
    info.author = text("creator").or_else(|| text("initial-creator"));
    info.language = text("language");
    info
}
