//! Mail: the fields people read, the body, and what is attached.

use mailparse::{DispositionType, MailHeaderMap as _, ParsedMail};

use crate::error::DocumentError;
use crate::model::{Block, Content, Info, Page};
use crate::options::ReadingState;

/// The most parts of a mail: its parser recurses into each.
const MAX_PARTS: usize = 200;

pub(crate) fn read(bytes: &[u8], reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let boundaries = bytes.windows(9).filter(|window| window.eq_ignore_ascii_case(b"boundary=")).count();
    if boundaries > MAX_PARTS {
        return Err(DocumentError::limit(format!("the mail has more than {MAX_PARTS} nested parts")));
    }
    let mail = mailparse::parse_mail(bytes)
        .map_err(|error| DocumentError::damaged(format!("the mail is damaged: {error}")))?;
    let field = |name: &str| mail.headers.get_first_value(name).unwrap_or_default().trim().to_owned();
    let mut page = Page::default();
    let subject = field("Subject");
    if !subject.is_empty() {
        page.blocks.push(Block::heading(1, subject.clone()));
    }
    let lines: Vec<String> = ["From", "To", "Cc", "Date"]
        .iter()
        .map(|name| (name, field(name)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    if !lines.is_empty() {
        page.blocks.push(Block::paragraph(lines.join("\n")));
    }
    let mut parts = Parts { attachments: Vec::new(), reading, depth: 0 };
    let body = parts.body(&mail)?;
    page.blocks.extend(body);
    if !parts.attachments.is_empty() {
        let mut rows = vec![vec!["attachment".to_owned(), "type".to_owned(), "bytes".to_owned()]];
        rows.append(&mut parts.attachments);
        page.blocks.push(Block::new(Content::Table { rows, header: true }));
    }
    let author = field("From");
    let info = Info {
        title: (!subject.is_empty()).then_some(subject),
        author: (!author.is_empty()).then_some(author),
        ..Info::default()
    };
    super::single(page, info, reading)
}

struct Parts<'r, 'o> {
    attachments: Vec<Vec<String>>,
    reading: &'r ReadingState<'o>,
    depth: usize,
}

impl Parts<'_, '_> {
    /// The text of a part: of alternatives the plain one, of others all, one after the other.
    fn body(&mut self, mail: &ParsedMail<'_>) -> Result<Vec<Block>, DocumentError> {
        self.depth += 1;
        if self.depth > 50 {
            return Ok(Vec::new());
        }
        let kind = mail.ctype.mimetype.to_ascii_lowercase();
        let mut blocks = Vec::new();
        if kind == "multipart/alternative" {
            let plain = mail.subparts.iter().find(|part| {
                part.ctype.mimetype.eq_ignore_ascii_case("text/plain")
                    && part.get_body().is_ok_and(|body| !body.trim().is_empty())
            });
            // The last alternative is the richest.
            if let Some(part) = plain.or(mail.subparts.last()) {
                blocks = self.body(part)?;
            }
        } else if !mail.subparts.is_empty() {
            for part in &mail.subparts {
                blocks.extend(self.body(part)?);
            }
        } else if mail.get_content_disposition().disposition == DispositionType::Attachment
            || !matches!(kind.as_str(), "text/plain" | "text/html" | "message/rfc822")
        {
            self.attach(mail, &kind);
        } else if kind == "message/rfc822" {
            let raw = mail.get_body_raw().unwrap_or_default();
            let nested = raw.windows(9).filter(|window| window.eq_ignore_ascii_case(b"boundary=")).count();
            match mailparse::parse_mail(&raw).ok().filter(|_| nested <= MAX_PARTS) {
                Some(inner) => {
                    let subject = inner.headers.get_first_value("Subject").unwrap_or_default();
                    blocks.push(Block::heading(
                        2,
                        if subject.is_empty() { "Forwarded mail" } else { subject.trim() },
                    ));
                    blocks.extend(self.body(&inner)?);
                }
                None => self.attach(mail, &kind),
            }
        } else {
            let text =
                mail.get_body().unwrap_or_else(|_| super::decode(&mail.get_body_raw().unwrap_or_default()));
            blocks = if kind == "text/html" {
                super::html::parse(&text, self.reading)?.without_figures()
            } else {
                super::plain::paragraphs(&text)
            };
        }
        self.depth -= 1;
        Ok(blocks)
    }

    fn attach(&mut self, mail: &ParsedMail<'_>, kind: &str) {
        let disposition = mail.get_content_disposition();
        let name = disposition.params.get("filename").or_else(|| mail.ctype.params.get("name")).cloned();
        let size = mail.get_body_raw().map_or(0, |body| body.len());
        self.attachments.push(vec![
            name.unwrap_or_else(|| "unnamed".to_owned()),
            kind.to_owned(),
            size.to_string(),
        ]);
    }
}
