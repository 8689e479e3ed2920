//! Which tools fit a question: exact names first, then BM25 over names, descriptions and parameters.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use toolwright_core::ToolSpec;

use super::words::{is_empty, related, words};

/// The constants of BM25.
const K1: f64 = 1.5;
const B: f64 = 0.75;

/// How much a word counts by where it stands.
const NAME: f64 = 3.0;
const SUMMARY: f64 = 2.0;
const REST: f64 = 1.0;
const PARAMETER: f64 = 0.4;

/// How much a word counts that only means nearly the same.
const RELATED: f64 = 0.35;

/// The most bytes of a description that are read, and the most parameters.
const MAX_TEXT: usize = 4_000;
const MAX_PARAMETERS: usize = 100;

/// The most words of a question.
const MAX_WORDS: usize = 64;

/// An index of tools by the words of their definitions.
///
/// ```
/// use toolwright_core::ToolSpec;
/// use toolwright_runtime::ToolIndex;
///
/// let tools = [("droplets_create", "Creates a droplet."), ("domains_list", "Lists domains.")];
/// let tools = tools.map(|(name, description)| ToolSpec::new(name, description));
/// let index = ToolIndex::new(&tools);
/// assert_eq!(&*index.find("make a new virtual machine", 1)[0], "droplets_create");
/// assert_eq!(&*index.find("select:domains_list", 5)[0], "domains_list");
/// ```
#[derive(Debug, Default)]
pub struct ToolIndex {
    names: Vec<Arc<str>>,
    lengths: Vec<f64>,
    mean: f64,
    /// For each word the tools that have it, and how much it counts there.
    postings: HashMap<String, Vec<(usize, f64)>>,
}

impl ToolIndex {
    /// An index of these definitions.
    pub fn new<'s>(tools: impl IntoIterator<Item = &'s ToolSpec>) -> Self {
        let mut index = ToolIndex::default();
        for tool in tools {
            index.add(tool);
        }
        #[allow(clippy::cast_precision_loss, reason = "a mean of at most some thousands")]
        let count = index.names.len().max(1) as f64;
        index.mean = index.lengths.iter().sum::<f64>() / count;
        index
    }

    fn add(&mut self, tool: &ToolSpec) {
        let mut weights: HashMap<String, f64> = HashMap::new();
        let mut length = 0.0;
        let mut take = |text: &str, weight: f64| {
            for word in words(text) {
                length += weight;
                *weights.entry(word).or_default() += weight;
            }
        };
        take(&tool.name, NAME);
        let text = toolwright_core::text::head(&tool.description, MAX_TEXT);
        let end = text.find(['\n', '.']).unwrap_or(text.len());
        let (summary, rest) = text.split_at(end);
        take(summary, SUMMARY);
        take(rest, REST);
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten().take(MAX_PARAMETERS) {
            take(name, PARAMETER);
            let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            take(toolwright_core::text::head(text, 200), PARAMETER / 2.0);
        }
        let at = self.names.len();
        self.names.push(tool.name.clone());
        self.lengths.push(length);
        for (word, weight) in weights {
            self.postings.entry(word).or_default().push((at, weight));
        }
    }

    /// The names of at most so many tools, the best first. `select:a,b` means exactly those that are there.
    pub fn find(&self, question: &str, most: usize) -> Vec<Arc<str>> {
        let question = question.trim();
        let exact =
            |name: &str| self.names.iter().find(|known| known.eq_ignore_ascii_case(name.trim())).cloned();
        if let Some(names) = question.strip_prefix("select:") {
            return names.split(',').filter_map(exact).take(most).collect();
        }
        let mut found: Vec<Arc<str>> = exact(question).into_iter().collect();
        let mut ranked: Vec<(usize, f64)> = self.scores(question).into_iter().collect();
        ranked.sort_by(|(at, score), (other, against)| against.total_cmp(score).then(at.cmp(other)));
        for (at, _) in ranked {
            if found.len() >= most {
                break;
            }
            if let Some(name) = self.names.get(at).filter(|name| !found.contains(name)) {
                found.push(name.clone());
            }
        }
        found.truncate(most);
        found
    }

    fn scores(&self, question: &str) -> HashMap<usize, f64> {
        let mut asked = words(question);
        asked.retain(|word| !is_empty(word));
        if asked.is_empty() {
            asked = words(question);
        }
        asked.truncate(MAX_WORDS);
        let mut seen = HashSet::new();
        asked.retain(|word| seen.insert(word.clone()));
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for word in &asked {
            // A tool counts once for a word and those that mean the same: the best of them.
            let mut best: HashMap<usize, f64> = HashMap::new();
            self.count(word, 1.0, &mut best);
            for other in related(word) {
                self.count(other, RELATED, &mut best);
            }
            for (at, score) in best {
                *scores.entry(at).or_default() += score;
            }
        }
        scores
    }

    #[allow(clippy::cast_precision_loss, reason = "numbers of tools")]
    fn count(&self, word: &str, weight: f64, best: &mut HashMap<usize, f64>) {
        let Some(postings) = self.postings.get(word) else { return };
        let (all, with) = (self.names.len() as f64, postings.len() as f64);
        let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        for (at, times) in postings {
            let length = self.lengths.get(*at).copied().unwrap_or_default() / self.mean.max(1.0);
            let score = weight * rarity * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length));
            let known = best.entry(*at).or_default();
            *known = known.max(score);
        }
    }
}
