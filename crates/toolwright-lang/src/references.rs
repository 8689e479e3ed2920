//! Lists of tools for a model or a program: tools of the file by name or pattern, and new ones.

use std::sync::Arc;

use toolwright_core::{Patterns, nearest};

use crate::build::{FileBuilder, Tools, texts};
use crate::diag::FileSpan;
use crate::missing_tools::Absent;
use crate::step::call::Callee;
use crate::yaml::{Data, Node};

impl FileBuilder<'_> {
    /// A list of references and definitions: names, `match` patterns, or new tools. References come first.
    pub(crate) fn references(&mut self, list: &Node, shared: &Tools, scope: &str) -> Tools {
        let Data::List(nodes) = &list.data else {
            self.problems.error(list.place, format!("`tools` is a list, not {}", list.kind()));
            return Tools::new();
        };
        let (mut referred, mut defined) = (Tools::new(), Tools::new());
        for node in nodes {
            if let Some(name) = node.text() {
                match shared.get(&**name).filter(|callee| !callee.broken) {
                    Some(callee) => {
                        referred.insert(name.clone(), callee.clone());
                    }
                    None => self.unknown_tool(name, node.place, shared.keys().map(|name| &**name)),
                }
            } else if let Some(patterns) = node.get("match") {
                self.matching(node, patterns, shared, &mut referred);
            } else {
                self.definition(node, Some(shared), &mut defined, scope, None);
            }
        }
        referred.extend(defined);
        referred
    }

    fn matching(&mut self, node: &Node, patterns: &Node, shared: &Tools, into: &mut Tools) {
        if let Data::Map(entries) = &node.data {
            for (key, _) in entries.iter().filter(|(key, _)| !key.is_key("match")) {
                self.problems.error(
                    key.place,
                    format!("`match` stands alone; `{}` means nothing here", key.key_text()),
                );
            }
        }
        let words = texts(patterns);
        if !matches!(&patterns.data, Data::List(items) if items.len() == words.len()) {
            self.problems.error(patterns.place, "`match` takes a list of patterns");
            return;
        }
        let wanted = Patterns::new(&words);
        let taken = |(name, callee): &(&Arc<str>, &Callee)| wanted.matches(name) && !callee.broken;
        let found: Vec<_> = shared.iter().filter(taken).collect();
        let gone = self.absent.iter().any(|absent| absent.gone);
        if found.is_empty() && self.unasked.is_empty() && !gone {
            self.problems.error(patterns.place, format!("no tool matches {}", words.join(", ")));
        }
        into.extend(found.into_iter().map(|(name, callee)| (name.clone(), callee.clone())));
    }

    pub(crate) fn unusable_tool(&mut self, name: &str, place: FileSpan) {
        self.problems.error(place, format!("`{name}` cannot be called: its definition has problems"));
    }

    pub(crate) fn unknown_tool<'n>(
        &mut self,
        name: &str,
        place: FileSpan,
        known: impl Iterator<Item = &'n str> + Clone,
    ) {
        if self.unasked.iter().any(|prefix| name.starts_with(prefix.as_str())) {
            return;
        }
        if self.broken.iter().any(|broken| broken == name) {
            self.unusable_tool(name, place);
            return;
        }
        if self.coming.iter().any(|coming| **coming == *name) {
            self.problems.error_hint(
                place,
                format!("`{name}` cannot be called here: it is defined further down, or is this very tool"),
                "a flow can call the tools above it; move that one up. Tools that call themselves or one another in a circle would never end",
            );
            return;
        }
        if let Some(absent) = Absent::find(&self.absent, name) {
            if !absent.gone {
                self.problems.error(place, format!("`{name}` cannot be called: {}", absent.why));
            }
            return;
        }
        let message = format!("there is no tool `{}`", toolwright_core::text::clip(name, 80));
        let importable = || {
            let near = nearest(name, known.clone());
            let own = self.host.builtins.names().find(|own| *own == name);
            let like = |other: &&str| other.len().abs_diff(name.len()) <= 2;
            let misspelt = || nearest(name, self.host.builtins.names()).filter(like);
            own.or_else(|| near.is_none().then(misspelt).flatten())
        };
        let hint = if let Some(own) = importable() {
            format!("`{own}` is built in, but must be imported before it is called: `- import_tool: {own}`")
        } else {
            match nearest(name, known.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let names: Vec<_> = known.take(12).collect();
                    if names.is_empty() {
                        "no tools are defined above".to_owned()
                    } else {
                        format!("the tools are: {}", names.join(", "))
                    }
                }
            }
        };
        self.problems.error_hint(place, message, hint);
    }
}
