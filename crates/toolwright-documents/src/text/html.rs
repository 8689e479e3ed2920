//! HTML as blocks. Scripts and styles are left out; what the page hides is marked.

use html5gum::{Token, Tokenizer};

use crate::error::DocumentError;
use crate::model::{Block, Content, Figure, HiddenReason, Info, ListItem, Page};
use crate::options::ReadingState;

/// The most tags and texts of a page.
const MAX_TOKENS: usize = 5_000_000;

/// A page with its figures, whose ids are the addresses they have in the page.
#[derive(Default)]
pub(crate) struct Parsed {
    pub(crate) page: Page,
    pub(crate) title: Option<String>,
    pub(crate) language: Option<String>,
}

impl Parsed {
    /// The blocks alone, where there are no figures to load.
    pub(crate) fn without_figures(self) -> Vec<Block> {
        let mut blocks = self.page.blocks;
        blocks.retain(|block| !matches!(block.content, Content::Figure { .. }));
        blocks
    }
}

pub(crate) fn read(bytes: &[u8], reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let mut parsed = parse(&super::decode(bytes), reading)?;
    let info = Info { title: parsed.title.take(), language: parsed.language.take(), ..Info::default() };
    // Pictures of a page lie elsewhere: only those inside its text are there.
    for figure in &mut parsed.page.figures {
        if let Some(data) = embedded(&figure.id)
            && let Some((media_type, width, height)) = super::image::measure(&data)
        {
            (figure.width, figure.height) = (width, height);
            if reading.options.figures == crate::FigureDetail::Encoded {
                figure.media_type = media_type.to_owned();
                figure.data = data;
            }
        }
        figure.id = String::new();
    }
    super::single(parsed.page, info, reading)
}

/// The bytes of a picture that stands in an address.
fn embedded(address: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let rest = address.strip_prefix("data:image/")?;
    let (_, data) = rest.split_once(";base64,")?;
    let data: String = data.chars().filter(|ch| !ch.is_whitespace()).collect();
    base64::engine::general_purpose::STANDARD.decode(data).ok()
}

pub(crate) fn parse(text: &str, reading: &ReadingState<'_>) -> Result<Parsed, DocumentError> {
    let mut builder = BlockBuilder::new(reading.options.limits.depth.max(16));
    for (count, token) in Tokenizer::new(text).enumerate() {
        if count > MAX_TOKENS {
            return Err(DocumentError::limit(format!("the page has more than {MAX_TOKENS} tags and texts")));
        }
        if count.is_multiple_of(65_536) && reading.is_late() {
            return Err(DocumentError::limit(reading.late()));
        }
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                let attributes = tag
                    .attributes
                    .iter()
                    .map(|(name, value)| {
                        (
                            String::from_utf8_lossy(name).into_owned(),
                            String::from_utf8_lossy(value).into_owned(),
                        )
                    })
                    .collect();
                builder.start(&name, &Attributes(attributes), tag.self_closing);
            }
            Token::EndTag(tag) => builder.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => builder.text(&String::from_utf8_lossy(&text)),
            _ => {}
        }
    }
    builder.flush();
    builder.close_tables();
    let mut parsed = builder.parsed;
    parsed.page.number = 1;
    Ok(parsed)
}

struct Attributes(Vec<(String, String)>);

impl Attributes {
    fn get(&self, wanted: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
    }

    fn hides(&self) -> bool {
        let style = self.get("style").unwrap_or_default().to_ascii_lowercase().replace(' ', "");
        self.get("hidden").is_some()
            || ["display:none", "visibility:hidden", "font-size:0", "opacity:0;"]
                .iter()
                .any(|mark| style.contains(mark))
            || style.ends_with("opacity:0")
    }
}

/// A table that is still open.
#[derive(Default)]
struct OpenTable {
    rows: Vec<Vec<String>>,
    cell: Option<String>,
    span: usize,
    /// Rows that cells of earlier ones reach into, by column.
    reach: Vec<usize>,
    header: bool,
}

struct BlockBuilder {
    parsed: Parsed,
    depth: usize,
    text: String,
    kind: Option<Content>,
    /// Open lists: whether numbered, and the number of the last item.
    lists: Vec<(bool, u32)>,
    items: Vec<ListItem>,
    item_open: bool,
    tables: Vec<OpenTable>,
    /// An element whose content is not text, by name.
    skipped: Option<(String, usize)>,
    hidden: Option<(String, usize, String)>,
    pre: usize,
    link: Option<(String, usize)>,
    title: Option<String>,
}

impl BlockBuilder {
    fn new(depth: usize) -> Self {
        BlockBuilder {
            parsed: Parsed::default(),
            depth,
            text: String::new(),
            kind: None,
            lists: Vec::new(),
            items: Vec::new(),
            item_open: false,
            tables: Vec::new(),
            skipped: None,
            hidden: None,
            pre: 0,
            link: None,
            title: None,
        }
    }

    /// Where text goes at present.
    fn target(&mut self) -> &mut String {
        match self.tables.last_mut().and_then(|table| table.cell.as_mut()) {
            Some(cell) => cell,
            None => &mut self.text,
        }
    }

    fn push(&mut self, content: Content) {
        self.parsed.page.blocks.push(Block::new(content));
    }

    /// Ends the block that is open.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        let kind = self.kind.take();
        self.link = None;
        if let Some(Content::Code { language, .. }) = kind {
            if !text.trim().is_empty() {
                let text = text.trim_matches('\n').to_owned();
                self.close_list();
                self.push(Content::Code { language, text });
            }
            return;
        }
        let text = text.trim().to_owned();
        if self.item_open {
            if !text.is_empty() {
                let depth = u8::try_from(self.lists.len().saturating_sub(1)).unwrap_or(8).min(8);
                let mark = match self.lists.last() {
                    Some((true, number)) => Some(format!("{number}.")),
                    _ => None,
                };
                self.items.push(ListItem { depth, mark, text });
                self.item_open = false;
            }
            return;
        }
        if text.is_empty() {
            return;
        }
        if !self.lists.is_empty() && kind.is_none() {
            // More words of the item before.
            if let Some(item) = self.items.last_mut() {
                item.text.push('\n');
                item.text.push_str(&text);
                return;
            }
        }
        self.close_list();
        match kind {
            Some(Content::Heading { level, .. }) => self.push(Content::Heading { level, text }),
            _ => self.push(Content::Paragraph { text }),
        }
    }

    fn close_list(&mut self) {
        if !self.items.is_empty() {
            let items = std::mem::take(&mut self.items);
            self.push(Content::List { items });
        }
    }

    fn close_tables(&mut self) {
        while !self.tables.is_empty() {
            self.end_table();
        }
        self.flush();
        self.close_list();
    }

    fn in_cell(&self) -> bool {
        self.tables.last().is_some_and(|table| table.cell.is_some())
    }

    /// Begins a block, or a line inside a cell.
    fn block(&mut self, kind: Option<Content>) {
        if self.in_cell() {
            let target = self.target();
            if !target.is_empty() && !target.ends_with('\n') {
                target.push('\n');
            }
        } else {
            self.flush();
            self.kind = kind;
        }
    }

    fn start(&mut self, name: &str, attributes: &Attributes, closed: bool) {
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name && !closed {
                *depth += 1;
            }
            return;
        }
        if let Some((hidden, depth, _)) = &mut self.hidden {
            if hidden == name && !closed && !is_void(name) {
                *depth += 1;
            }
            return;
        }
        if matches!(
            name,
            "script" | "style" | "noscript" | "template" | "svg" | "head" | "iframe" | "object" | "select"
        ) && !closed
        {
            // The title is the one part of a head that is kept.
            if name != "head" {
                self.skipped = Some((name.to_owned(), 1));
            }
            return;
        }
        if attributes.hides() && !is_void(name) && !closed && name != "body" && name != "html" {
            self.hidden = Some((name.to_owned(), 1, String::new()));
            return;
        }
        match name {
            "html" => {
                self.parsed.language =
                    attributes.get("lang").or(attributes.get("xml:lang")).map(str::to_owned)
            }
            "title" if self.parsed.title.is_none() => self.title = Some(String::new()),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.as_bytes().get(1).map_or(1, |digit| digit.saturating_sub(b'0'));
                self.block(Some(Content::Heading { level, text: String::new() }));
            }
            "pre" => {
                self.block(Some(Content::Code { language: None, text: String::new() }));
                self.pre += 1;
            }
            "code" => {
                if self.pre > 0 {
                    let named = attributes.get("class").and_then(|class| {
                        class.split_whitespace().find_map(|word| word.strip_prefix("language-"))
                    });
                    if let Some(Content::Code { language, .. }) = &mut self.kind {
                        *language = named.map(str::to_owned);
                    }
                } else {
                    self.target().push('`');
                }
            }
            "br" => self.target().push('\n'),
            "ul" | "ol" if !self.in_cell() => {
                self.flush();
                if self.lists.len() < self.depth {
                    let start =
                        attributes.get("start").and_then(|start| start.parse::<u32>().ok()).unwrap_or(1);
                    self.lists.push((name == "ol", start.saturating_sub(1)));
                }
            }
            "li" | "dt" => {
                if self.in_cell() {
                    self.block(None);
                    self.target().push_str("- ");
                } else {
                    self.flush();
                    if self.lists.is_empty() {
                        self.kind = None;
                    } else {
                        if let Some((_, number)) = self.lists.last_mut() {
                            *number = number.saturating_add(1);
                        }
                        self.item_open = true;
                    }
                }
            }
            "table" => {
                if !self.in_cell() {
                    self.flush();
                    self.close_list();
                }
                if self.tables.len() < 8 {
                    self.tables.push(OpenTable::default());
                }
            }
            "tr" => {
                self.end_cell();
                if let Some(table) = self.tables.last_mut() {
                    table.rows.push(Vec::new());
                }
            }
            "td" | "th" => {
                self.end_cell();
                self.start_cell(name == "th", attributes);
            }
            "img" => {
                let address = attributes.get("src").unwrap_or_default();
                let caption =
                    attributes.get("alt").map(str::trim).filter(|alt| !alt.is_empty()).map(str::to_owned);
                if self.in_cell() {
                    if let Some(caption) = caption {
                        self.target().push_str(&format!("[image: {caption}]"));
                    }
                    return;
                }
                let size = |name: &str| attributes.get(name).and_then(|size| size.parse().ok()).unwrap_or(0);
                let kind = self.kind.clone();
                self.flush();
                self.kind = kind;
                self.close_list();
                let figure = Figure {
                    id: address.to_owned(),
                    width: size("width"),
                    height: size("height"),
                    caption,
                    ..Figure::default()
                };
                self.push(Content::Figure { figure: self.parsed.page.figures.len() });
                self.parsed.page.figures.push(figure);
            }
            "a" => {
                let address = attributes.get("href").unwrap_or_default().to_owned();
                let start = self.target().len();
                self.link = Some((address, start));
            }
            "p" | "div" | "section" | "article" | "header" | "footer" | "main" | "nav" | "aside"
            | "blockquote" | "hr" | "figure" | "figcaption" | "form" | "fieldset" | "address" | "dl"
            | "dd" | "details" | "summary" | "center" | "caption" | "body" => {
                self.block(None);
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        if let Some((hidden, depth, _)) = &mut self.hidden {
            if hidden == name {
                *depth -= 1;
                if *depth == 0 {
                    self.end_hidden();
                }
            }
            return;
        }
        match name {
            "title" => {
                if let Some(title) = self.title.take() {
                    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                    self.parsed.title = Some(title).filter(|title| !title.is_empty());
                }
            }
            "pre" => {
                self.pre = self.pre.saturating_sub(1);
                self.block(None);
            }
            "code" if self.pre == 0 => self.target().push('`'),
            "ul" | "ol" if !self.in_cell() => {
                self.flush();
                self.item_open = false;
                self.lists.pop();
                if self.lists.is_empty() {
                    self.close_list();
                }
            }
            "li" if !self.in_cell() => {
                self.flush();
                self.item_open = false;
            }
            "td" | "th" => self.end_cell(),
            "table" => self.end_table(),
            "a" => self.end_link(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "div" | "section" | "article" | "header"
            | "footer" | "main" | "nav" | "aside" | "blockquote" | "figure" | "figcaption" | "form"
            | "fieldset" | "address" | "dl" | "dd" | "dt" | "details" | "summary" | "center" | "caption" => {
                self.block(None)
            }
            _ => {}
        }
    }

    fn end_hidden(&mut self) {
        let Some((_, _, text)) = self.hidden.take() else { return };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.chars().any(char::is_alphanumeric) {
            self.push(Content::Hidden { reason: HiddenReason::Marked, text });
        }
    }

    fn end_link(&mut self) {
        let Some((address, start)) = self.link.take() else { return };
        if !["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme)) {
            return;
        }
        let target = self.target();
        let words = target.get(start..).unwrap_or_default().trim().to_owned();
        if words.is_empty() || words == address || words.contains('\n') {
            return;
        }
        let gap = target.get(start..).is_some_and(|words| words.starts_with(' '));
        target.truncate(start);
        if gap {
            target.push(' ');
        }
        target.push_str(&format!("[{words}]({address})"));
    }

    fn start_cell(&mut self, header: bool, attributes: &Attributes) {
        let Some(table) = self.tables.last_mut() else { return };
        let number = |name: &str| {
            attributes.get(name).and_then(|span| span.parse::<usize>().ok()).unwrap_or(1).clamp(1, 500)
        };
        let first = table.rows.len() <= 1;
        if table.rows.is_empty() {
            table.rows.push(Vec::new());
        }
        let Some(row) = table.rows.last_mut() else { return };
        // Cells of earlier rows reach into this one.
        while let Some(reach) = table.reach.get_mut(row.len()).filter(|reach| **reach > 0) {
            *reach -= 1;
            row.push(String::new());
        }
        let span = number("colspan");
        let down = number("rowspan") - 1;
        for column in row.len()..row.len() + span {
            if table.reach.len() <= column {
                table.reach.resize(column + 1, 0);
            }
            if let Some(reach) = table.reach.get_mut(column) {
                *reach = down;
            }
        }
        if first && row.is_empty() {
            table.header = header;
        }
        table.span = span;
        table.cell = Some(String::new());
    }

    fn end_cell(&mut self) {
        let Some(table) = self.tables.last_mut() else { return };
        let Some(cell) = table.cell.take() else { return };
        if let Some(row) = table.rows.last_mut().filter(|row| row.len() < 16_384) {
            row.push(cell.trim().to_owned());
            row.extend(std::iter::repeat_n(String::new(), table.span.saturating_sub(1)));
        }
    }

    fn end_table(&mut self) {
        self.end_cell();
        let Some(mut table) = self.tables.pop() else { return };
        table.rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        if table.rows.is_empty() {
            return;
        }
        // A table inside a cell becomes its text; a table of one column lays a page out.
        let flat = || {
            let rows = table.rows.iter().map(|row| {
                let cells: Vec<&str> =
                    row.iter().map(String::as_str).filter(|cell| !cell.is_empty()).collect();
                cells.join(" ")
            });
            rows.collect::<Vec<_>>().join("\n")
        };
        if self.in_cell() {
            let flat = flat();
            let target = self.target();
            if !target.is_empty() && !target.ends_with('\n') {
                target.push('\n');
            }
            target.push_str(&flat);
        } else if table.rows.iter().all(|row| row.len() <= 1) {
            for row in table.rows {
                for text in row {
                    self.push(Content::Paragraph { text });
                }
            }
        } else {
            self.push(Content::Table { rows: table.rows, header: table.header });
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(title) = &mut self.title {
            title.push_str(text);
            return;
        }
        if self.skipped.is_some() {
            return;
        }
        if let Some((_, _, hidden)) = &mut self.hidden {
            hidden.push_str(text);
            return;
        }
        // Between the rows of a table there is nothing to read.
        if self.tables.last().is_some_and(|table| table.cell.is_none()) && text.trim().is_empty() {
            return;
        }
        if self.pre > 0 {
            self.target().push_str(text);
            return;
        }
        let target = self.target();
        for ch in text.chars() {
            if ch.is_whitespace() && ch != '\u{a0}' {
                if !target.is_empty() && !target.ends_with([' ', '\n']) {
                    target.push(' ');
                }
            } else {
                target.push(if ch == '\u{a0}' { ' ' } else { ch });
            }
        }
    }
}

fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "source"
            | "track"
            | "wbr"
    )
}
