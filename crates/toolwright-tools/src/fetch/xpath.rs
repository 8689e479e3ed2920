//! The part of XPath that picks elements of pages: steps by name, `//`, `..`, positions, and conditions on
//! attributes and texts, such as `//div[@id='main']//li[contains(@class, 'x')][1]/a`.

use std::cell::Cell;

use toolwright_core::{ErrorKind, ToolError};

use super::tree::{Element, PageNode, PageTree};

/// The longest path.
const MAX_LENGTH: usize = 1000;

/// How many bytes of text and elements conditions may look at, which takes about a second.
const MAX_WORK: usize = 1 << 30;

/// How deep conditions may stand inside each other.
const MAX_DEPTH: usize = 16;

/// Paths, one of which an element must fit.
pub(super) struct XPath(Vec<Vec<PathStep>>);

struct PathStep {
    /// Whether elements further inside count too: `//`.
    anywhere: bool,
    test: NodeTest,
    filters: Vec<Filter>,
}

enum NodeTest {
    Name(String),
    Any,
    Own,
    Parent,
}

enum Filter {
    /// The place among its like, from 1.
    Place(usize),
    Last,
    When(Condition),
}

enum Condition {
    There(FilterOperand),
    Equal(FilterOperand, String, bool),
    Contains(FilterOperand, String),
    StartsWith(FilterOperand, String),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// What a condition looks at.
enum FilterOperand {
    Attribute(String),
    /// The element's own text.
    Text,
    /// All text inside it.
    Content,
    Child(String),
    Trimmed(Box<FilterOperand>),
}

impl XPath {
    pub(super) fn parse(text: &str) -> Result<XPath, ToolError> {
        if text.len() > MAX_LENGTH {
            return Err(ToolError::invalid(format!("`xpath` is longer than {MAX_LENGTH} bytes")));
        }
        let mut parser = Parser { text, at: 0 };
        let mut paths = vec![parser.path()?];
        while parser.take("|") {
            paths.push(parser.path()?);
        }
        parser.blanks();
        if parser.rest().is_empty() { Ok(XPath(paths)) } else { Err(parser.wrong()) }
    }

    /// The elements it picks, in the order of the page.
    pub(super) fn pick(&self, tree: &PageTree) -> Result<Vec<usize>, ToolError> {
        let parents = parents(tree);
        let look = PageSearch { tree, left: Cell::new(MAX_WORK) };
        let mut picked = vec![false; tree.len()];
        for path in &self.0 {
            let found = walk(&look, &parents, path);
            if look.left.get() == 0 {
                return Err(ToolError::of(ErrorKind::Limit, "`xpath` takes too long on this page")
                    .hint("use fewer steps and conditions"));
            }
            for at in found {
                if let Some(flag) = picked.get_mut(at) {
                    *flag = true;
                }
            }
        }
        Ok(picked.iter().enumerate().filter(|(_, picked)| **picked).map(|(at, _)| at).collect())
    }
}

/// The page, and how much more may be looked at: a condition can look at all text of the page for each of its
/// elements.
struct PageSearch<'t> {
    tree: &'t PageTree,
    left: Cell<usize>,
}

impl PageSearch<'_> {
    /// Whether so many more bytes or elements may be looked at.
    fn at(&self, amount: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(amount));
        self.left.get() > 0
    }

    fn content(&self, at: usize) -> String {
        if self.left.get() == 0 {
            return String::new();
        }
        let text = self.tree.content(at);
        self.at(text.len() + 1);
        text
    }
}

fn parents(tree: &PageTree) -> Vec<usize> {
    let mut parents = vec![0; tree.len()];
    for at in 0..tree.len() {
        for child in tree.children(at) {
            if let Some(parent) = parents.get_mut(*child) {
                *parent = at;
            }
        }
    }
    parents
}

/// Follows the steps. Nodes are numbered in the order of the page; `None` is what stands above `html`.
fn walk(look: &PageSearch<'_>, parents: &[usize], path: &[PathStep]) -> Vec<usize> {
    let tree = look.tree;
    let mut here: Vec<Option<usize>> = vec![None];
    for step in path {
        if step.anywhere {
            here = with_descendants(tree, &here);
        }
        let mut found = vec![false; tree.len()];
        for from in here {
            let mut candidates: Vec<usize> = match (&step.test, from) {
                (NodeTest::Own, Some(own)) => vec![own],
                (NodeTest::Own, None) | (NodeTest::Parent, None | Some(0)) => continue,
                (NodeTest::Parent, Some(own)) => parents.get(own).copied().into_iter().collect(),
                (_, Some(own)) => tree.children(own).to_vec(),
                (_, None) => vec![0],
            };
            candidates.retain(|at| match (&step.test, tree.element(*at)) {
                (NodeTest::Name(name), Some(element)) => element.name == *name,
                (_, element) => element.is_some(),
            });
            for filter in &step.filters {
                candidates = filter.apply(look, candidates);
            }
            for at in candidates {
                if let Some(flag) = found.get_mut(at) {
                    *flag = true;
                }
            }
        }
        here = found.iter().enumerate().filter(|(_, found)| **found).map(|(at, _)| Some(at)).collect();
    }
    here.into_iter().flatten().collect()
}

fn with_descendants(tree: &PageTree, from: &[Option<usize>]) -> Vec<Option<usize>> {
    let mut seen = vec![false; tree.len()];
    let mut waiting: Vec<usize> = from.iter().map(|at| at.unwrap_or(0)).collect();
    let top = from.contains(&None);
    while let Some(at) = waiting.pop() {
        match seen.get_mut(at) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        waiting.extend(tree.children(at));
    }
    let inside = seen.iter().enumerate().filter(|(at, seen)| **seen && tree.element(*at).is_some());
    top.then_some(None).into_iter().chain(inside.map(|(at, _)| Some(at))).collect()
}

impl Filter {
    fn apply(&self, look: &PageSearch<'_>, candidates: Vec<usize>) -> Vec<usize> {
        match self {
            Filter::Place(place) => candidates.get(place.wrapping_sub(1)).copied().into_iter().collect(),
            Filter::Last => candidates.last().copied().into_iter().collect(),
            Filter::When(condition) => {
                let holds = |at: &usize| {
                    look.tree.element(*at).is_some_and(|element| condition.holds(look, *at, element))
                };
                candidates.into_iter().filter(holds).collect()
            }
        }
    }
}

impl Condition {
    fn holds(&self, look: &PageSearch<'_>, at: usize, element: &Element) -> bool {
        let any = |part: &FilterOperand, test: &dyn Fn(&str) -> bool| {
            part.values(look, at, element).iter().any(|value| test(value))
        };
        match self {
            Condition::There(part) => any(part, &|_| true),
            Condition::Equal(part, wanted, equal) => any(part, &|value| (value == wanted) == *equal),
            Condition::Contains(part, wanted) => any(part, &|value| value.contains(wanted.as_str())),
            Condition::StartsWith(part, wanted) => any(part, &|value| value.starts_with(wanted.as_str())),
            Condition::Not(inner) => !inner.holds(look, at, element),
            Condition::All(all) => all.iter().all(|one| one.holds(look, at, element)),
            Condition::Any(all) => all.iter().any(|one| one.holds(look, at, element)),
        }
    }
}

impl FilterOperand {
    fn values(&self, look: &PageSearch<'_>, at: usize, element: &Element) -> Vec<String> {
        let tree = look.tree;
        if !look.at(1 + element.attributes.len() + element.children.len()) {
            return Vec::new();
        }
        match self {
            FilterOperand::Attribute(name) => {
                element.attribute(name).map(str::to_owned).into_iter().collect()
            }
            FilterOperand::Text => {
                let texts = element.children.iter().filter_map(|child| match tree.get(*child) {
                    Some(PageNode::Text(text)) if look.at(text.len()) => Some(text.clone()),
                    _ => None,
                });
                texts.collect()
            }
            FilterOperand::Content => vec![look.content(at)],
            FilterOperand::Child(name) => {
                let named = |child: &&usize| tree.element(**child).is_some_and(|own| own.name == *name);
                element.children.iter().filter(named).map(|child| look.content(*child)).collect()
            }
            FilterOperand::Trimmed(part) => {
                let values = part.values(look, at, element);
                values.iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
            }
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, mark: &str) -> bool {
        self.blanks();
        let there = self.rest().starts_with(mark);
        if there {
            self.at += mark.len();
        }
        there
    }

    /// A word and not the beginning of a longer one.
    fn take_word(&mut self, word: &str) -> bool {
        self.blanks();
        let rest = self.rest().strip_prefix(word);
        let there = rest.is_some_and(|rest| !rest.starts_with(is_name));
        if there {
            self.at += word.len();
        }
        there
    }

    fn wrong(&self) -> ToolError {
        let rest: String = self.rest().chars().take(20).collect();
        let place = if rest.is_empty() { "at its end".to_owned() } else { format!("at `{rest}`") };
        ToolError::invalid(format!("`xpath` is not understood {place}")).hint(
            "it picks elements: names, `*`, `/`, `//`, `..`, `[1]`, `[last()]`, `[@id='x']`, \
             `[contains(@class, 'x')]`, `[text()='x']`, `and`, `or`, `not()`, `|`",
        )
    }

    fn expect(&mut self, mark: &str) -> Result<(), ToolError> {
        if self.take(mark) { Ok(()) } else { Err(self.wrong()) }
    }

    fn name(&mut self) -> Result<String, ToolError> {
        self.blanks();
        let rest = self.rest();
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default().to_ascii_lowercase();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Err(self.wrong());
        }
        self.at += length;
        Ok(name)
    }

    fn path(&mut self) -> Result<Vec<PathStep>, ToolError> {
        let mut steps = Vec::new();
        // A path without a slash begins at `html`, as the package begins there.
        let mut anywhere = self.take("//");
        let mut relative = !anywhere && !self.take("/");
        loop {
            if relative {
                steps.push(PathStep {
                    anywhere: false,
                    test: NodeTest::Name("html".to_owned()),
                    filters: Vec::new(),
                });
                relative = false;
            }
            steps.push(self.step(anywhere)?);
            anywhere = self.take("//");
            if !anywhere && !self.take("/") {
                return Ok(steps);
            }
        }
    }

    fn step(&mut self, anywhere: bool) -> Result<PathStep, ToolError> {
        let test = if self.take("..") {
            NodeTest::Parent
        } else if self.take(".") {
            NodeTest::Own
        } else if self.take("*") {
            NodeTest::Any
        } else {
            NodeTest::Name(self.name()?)
        };
        // Functions and axes are not names.
        if self.rest().starts_with(['(', ':']) {
            return Err(self.wrong());
        }
        let mut filters = Vec::new();
        while self.take("[") {
            filters.push(self.filter()?);
            self.expect("]")?;
        }
        Ok(PathStep { anywhere, test, filters })
    }

    fn filter(&mut self) -> Result<Filter, ToolError> {
        self.blanks();
        let digits: String = self.rest().chars().take_while(char::is_ascii_digit).collect();
        if !digits.is_empty() {
            let place = digits.parse().map_err(|_| self.wrong())?;
            self.at += digits.len();
            return Ok(Filter::Place(place));
        }
        if self.take_word("last") {
            self.expect("(")?;
            self.expect(")")?;
            return Ok(Filter::Last);
        }
        Ok(Filter::When(self.condition(0)?))
    }

    fn condition(&mut self, depth: usize) -> Result<Condition, ToolError> {
        let mut any = vec![self.every(depth)?];
        while self.take_word("or") {
            any.push(self.every(depth)?);
        }
        Ok(Condition::Any(any))
    }

    fn every(&mut self, depth: usize) -> Result<Condition, ToolError> {
        let mut all = vec![self.single(depth)?];
        while self.take_word("and") {
            all.push(self.single(depth)?);
        }
        Ok(Condition::All(all))
    }

    fn single(&mut self, depth: usize) -> Result<Condition, ToolError> {
        if depth > MAX_DEPTH {
            return Err(ToolError::invalid("the conditions of `xpath` stand too deep inside each other"));
        }
        if self.take("(") {
            let inner = self.condition(depth + 1)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take_word("not") {
            self.expect("(")?;
            let inner = self.condition(depth + 1)?;
            self.expect(")")?;
            return Ok(Condition::Not(Box::new(inner)));
        }
        let contains = self.take_word("contains");
        if contains || self.take_word("starts-with") {
            self.expect("(")?;
            let part = self.part(depth)?;
            self.expect(",")?;
            let wanted = self.quoted()?;
            self.expect(")")?;
            return Ok(match contains {
                true => Condition::Contains(part, wanted),
                false => Condition::StartsWith(part, wanted),
            });
        }
        let part = self.part(depth)?;
        if self.take("!=") {
            return Ok(Condition::Equal(part, self.quoted()?, false));
        }
        if self.take("=") {
            return Ok(Condition::Equal(part, self.quoted()?, true));
        }
        Ok(Condition::There(part))
    }

    fn part(&mut self, depth: usize) -> Result<FilterOperand, ToolError> {
        if self.take("@") {
            return Ok(FilterOperand::Attribute(self.name()?));
        }
        if self.take_word("text") {
            self.expect("(")?;
            self.expect(")")?;
            return Ok(FilterOperand::Text);
        }
        if self.take_word("normalize-space") && depth <= MAX_DEPTH {
            self.expect("(")?;
            let part = if self.take(")") {
                return Ok(FilterOperand::Trimmed(Box::new(FilterOperand::Content)));
            } else {
                self.part(depth + 1)?
            };
            self.expect(")")?;
            return Ok(FilterOperand::Trimmed(Box::new(part)));
        }
        if self.take(".") {
            return Ok(FilterOperand::Content);
        }
        Ok(FilterOperand::Child(self.name()?))
    }

    fn quoted(&mut self) -> Result<String, ToolError> {
        self.blanks();
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or_else(|| self.wrong())?;
        let inside = rest.get(1..).unwrap_or_default();
        let end = inside.find(quote).ok_or_else(|| self.wrong())?;
        let text = inside.get(..end).unwrap_or_default().to_owned();
        self.at += end + 2;
        Ok(text)
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<html><head><title>T</title></head><body><div id=main class='a b'><p>one<p>two <b>bold</b>\
        <ul><li>x<li class=last>y</ul></div><div><a href='/u'>link</a></div></body></html>";

    fn picked(path: &str) -> Vec<String> {
        let tree = PageTree::parse(PAGE).unwrap();
        let found = XPath::parse(path).unwrap().pick(&tree).unwrap();
        found.iter().map(|at| tree.content(*at).trim().to_owned()).collect()
    }

    #[test]
    fn elements_are_picked() {
        for (path, wanted) in [
            ("//p", vec!["one", "two bold"]),
            ("/html/body/div/p[2]", vec!["two bold"]),
            ("//li[last()]", vec!["y"]),
            ("//li[1]", vec!["x"]),
            ("//div[@id='main']//b", vec!["bold"]),
            ("//*[@class = \"last\"]", vec!["y"]),
            ("//div[contains(@class, 'b')]/ul/li", vec!["x", "y"]),
            ("//p[text()='one']", vec!["one"]),
            ("//p[contains(., 'bold')]", vec!["two bold"]),
            ("//p[b]", vec!["two bold"]),
            ("//div[not(@id)]/a", vec!["link"]),
            ("//a/..", vec!["link"]),
            ("//li[@class and starts-with(@class, 'la')] | //title", vec!["T", "y"]),
            ("//li[@class='x' or normalize-space(text())='x']", vec!["x"]),
            ("body/div/a", vec!["link"]),
            (".//b", vec!["bold"]),
            ("//nothing", vec![]),
        ] {
            assert_eq!(picked(path), wanted, "{path}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for path in [
            "",
            "//",
            "//div[",
            "//div[@]",
            "//p/text()",
            "//a/@href",
            "count(//p)",
            "//p[1",
            "//p]",
            "child::p",
        ] {
            assert!(XPath::parse(path).is_err(), "{path}");
        }
        let deep = format!("//p[{}@a{}]", "not(".repeat(200), ")".repeat(200));
        assert!(XPath::parse(&deep).is_err());
    }

    #[test]
    fn conditions_do_not_look_at_the_page_for_ever() {
        let page = format!("<div>{}{}</div>", "<i></i>".repeat(2000), "x".repeat(1 << 20));
        let tree = PageTree::parse(&page).unwrap();
        let picked = XPath::parse("//i/..[contains(., 'y')]").unwrap().pick(&tree);
        assert_eq!(picked.unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(XPath::parse("//div[contains(., 'x')]").unwrap().pick(&tree).unwrap().len(), 1);
    }
}
