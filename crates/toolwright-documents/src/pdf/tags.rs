//! What a tagged PDF says about the parts of a page: headings, notes, code, and the text that stands for a
//! figure.

use std::collections::HashMap;

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object, String as PdfString};
use hayro_interpret::hayro_syntax::page::Page as PdfPage;

use super::outline;

/// How deep the tree of numbers, and that of elements above one, may be.
const MAX_DEPTH: usize = 40;

/// The most marked contents of a page.
const MAX_MARKS: usize = 50_000;

/// The most branches of the tree of numbers that are looked at.
const MAX_BRANCHES: usize = 10_000;

/// What a piece of a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StructureRole {
    Heading(u8),
    Footnote,
    Code,
}

/// The marked contents of a page.
#[derive(Debug, Default)]
pub(super) struct Tags {
    roles: HashMap<i32, StructureRole>,
    alternatives: HashMap<i32, String>,
}

impl Tags {
    pub(super) fn role(&self, mcid: i32) -> Option<StructureRole> {
        self.roles.get(&mcid).copied()
    }

    pub(super) fn alternative(&self, mcid: i32) -> Option<String> {
        self.alternatives.get(&mcid).cloned()
    }
}

/// Reads the tags of a page by its entry in the tree of parents, so that no other page is looked at.
pub(super) fn read(pdf: &Pdf, page: &PdfPage<'_>) -> Tags {
    read_marked(pdf, page).unwrap_or_default()
}

fn read_marked(pdf: &Pdf, page: &PdfPage<'_>) -> Option<Tags> {
    let key = page.raw().get::<i32>(b"StructParents".as_slice())?;
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id())?;
    let root = catalog.get::<Dict<'_>>(b"StructTreeRoot".as_slice())?;
    let roles = root.get::<Dict<'_>>(b"RoleMap".as_slice()).unwrap_or_default();
    let tree = root.get::<Dict<'_>>(b"ParentTree".as_slice())?;
    let mut branches = MAX_BRANCHES;
    let parents = lookup(&tree, key, 0, &mut branches)?;
    let mut tags = Tags::default();
    for (mcid, element) in parents.iter::<Object<'_>>().take(MAX_MARKS).enumerate() {
        let Some(element) = element.into_dict() else { continue };
        let mcid = i32::try_from(mcid).ok()?;
        let (role, alternative) = role_of(&element, &roles);
        if let Some(role) = role {
            tags.roles.insert(mcid, role);
        }
        if let Some(text) = alternative {
            tags.alternatives.insert(mcid, text);
        }
    }
    Some(tags)
}

/// The entry of a tree of numbers.
fn lookup<'a>(node: &Dict<'a>, key: i32, depth: usize, branches: &mut usize) -> Option<Array<'a>> {
    *branches = branches.checked_sub(1)?;
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(numbers) = node.get::<Array<'a>>(b"Nums".as_slice()) {
        let mut entries = numbers.iter::<Object<'a>>();
        while let (Some(number), Some(value)) = (entries.next(), entries.next()) {
            if number.into_i32() == Some(key) {
                return value.into_array();
            }
        }
        return None;
    }
    for kid in node.get::<Array<'a>>(b"Kids".as_slice())?.iter::<Dict<'a>>() {
        let limits = kid.get::<[f32; 2]>(b"Limits".as_slice());
        if limits.is_some_and(|[low, high]| (key as f32) < low || (key as f32) > high) {
            continue;
        }
        if let Some(found) = lookup(&kid, key, depth + 1, branches) {
            return Some(found);
        }
    }
    None
}

/// The nearest role among an element and those it stands in, and the text that stands for it.
fn role_of(element: &Dict<'_>, roles: &Dict<'_>) -> (Option<StructureRole>, Option<String>) {
    let mut at = element.clone();
    let mut alternative = None;
    for _ in 0..MAX_DEPTH {
        let Some(name) = at.get::<Name<'_>>(b"S".as_slice()) else { break };
        let mapped = roles.get::<Name<'_>>(name.as_ref());
        let name: &[u8] = mapped.as_ref().map_or(name.as_ref(), |mapped| mapped.as_ref());
        if alternative.is_none() {
            alternative = at
                .get::<PdfString<'_>>(b"Alt".as_slice())
                .map(|text| outline::text(text.as_bytes()).trim().to_owned())
                .filter(|text| !text.is_empty());
        }
        let role = match name {
            b"H" | b"H1" | b"Title" => Some(StructureRole::Heading(1)),
            b"H2" => Some(StructureRole::Heading(2)),
            b"H3" => Some(StructureRole::Heading(3)),
            b"H4" => Some(StructureRole::Heading(4)),
            b"H5" => Some(StructureRole::Heading(5)),
            b"H6" => Some(StructureRole::Heading(6)),
            b"Note" | b"FENote" => Some(StructureRole::Footnote),
            b"Code" => Some(StructureRole::Code),
            _ => None,
        };
        if role.is_some() {
            return (role, alternative);
        }
        // Only what stands inside a line is looked through: a paragraph of a section is not a heading.
        if !matches!(
            name,
            b"Span" | b"Link" | b"Figure" | b"Lbl" | b"Reference" | b"Em" | b"Strong" | b"Quote"
        ) {
            break;
        }
        match at.get::<Dict<'_>>(b"P".as_slice()) {
            Some(parent) => at = parent,
            None => break,
        }
    }
    (None, alternative)
}
