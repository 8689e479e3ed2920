//! The public API as text, in `api.txt`: every module, every name in it, and what each name consists of. A
//! change of the API changes that file, so that it is seen and meant. `TOOLWRIGHT_BLESS=1` writes it again.
//!
//! The sources are read, since rustdoc has no stable output for programs. Items that a macro writes, and those
//! of other people's crates, are listed by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use quote::ToTokens as _;
use syn::{Fields, ImplItem, Item, TraitItem, UseTree, Visibility};

/// The most names at the root; hidden ones and modules aside.
const MAX_ROOT_NAMES: usize = 15;

/// The modules of one crate, by the path from its root.
struct Sources {
    modules: HashMap<Vec<String>, Vec<Item>>,
}

/// An item where it is defined.
struct Definition<'s> {
    sources: &'s Sources,
    item: &'s Item,
}

/// All our crates, by the name they have in code.
struct Workspace {
    crates: HashMap<String, Sources>,
}

impl Sources {
    fn read(root: &Path) -> Self {
        let mut sources = Sources { modules: HashMap::new() };
        sources.read_file(&root.join("lib.rs"), root, Vec::new());
        sources
    }

    fn read_file(&mut self, file: &Path, folder: &Path, path: Vec<String>) {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let items =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())).items;
        self.add(items, folder, path);
    }

    fn add(&mut self, items: Vec<Item>, folder: &Path, path: Vec<String>) {
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if module.attrs.iter().any(|attribute| attribute.to_token_stream().to_string().contains("test")) {
                continue;
            }
            let name = module.ident.to_string();
            let inside = [path.clone(), vec![name.clone()]].concat();
            match &module.content {
                Some((_, items)) => self.add(items.clone(), &folder.join(&name), inside),
                None => {
                    let (flat, nested) =
                        (folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs"));
                    let file: PathBuf = if flat.exists() { flat } else { nested };
                    self.read_file(&file, &folder.join(&name), inside);
                }
            }
        }
        self.modules.insert(path, items);
    }
}

impl Workspace {
    fn read() -> Self {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let named = std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
        let named = named.filter(|folder| folder.join("src/lib.rs").exists());
        let read = named.map(|folder| {
            let name = folder.file_name().unwrap().to_str().unwrap().replace('-', "_");
            (name, Sources::read(&folder.join("src")))
        });
        Workspace { crates: read.collect() }
    }

    /// The names a module offers, each with the crate, the module and the name to look for; `None` for a name
    /// that is not of ours.
    fn exports(&self, krate: &str, path: &[String]) -> BTreeMap<String, (String, Vec<String>)> {
        let mut exports = BTreeMap::new();
        for item in self.crates[krate].modules.get(path).into_iter().flatten() {
            if !is_public(item) || is_hidden(item) {
                continue;
            }
            if let Item::Use(item) = item {
                let mut leaves = Vec::new();
                flatten(&item.tree, &mut Vec::new(), &mut leaves);
                for (target, alias) in leaves {
                    let (krate, target) = self.absolute(krate, path, target);
                    match target.split_last() {
                        Some((last, module)) if last == "*" => exports.extend(self.exports(&krate, module)),
                        _ => drop(exports.insert(alias, (krate, target))),
                    }
                }
            } else if let Some(name) = name_of(item) {
                exports.insert(name.clone(), (krate.to_owned(), [path.to_vec(), vec![name]].concat()));
            }
        }
        exports
    }

    /// The crate and the path in it.
    fn absolute(&self, krate: &str, module: &[String], path: Vec<String>) -> (String, Vec<String>) {
        let (first, rest) = path.split_first().unwrap();
        match first.as_str() {
            "crate" => (krate.to_owned(), rest.to_vec()),
            "self" => (krate.to_owned(), [module, rest].concat()),
            "super" => (krate.to_owned(), [&module[..module.len() - 1], rest].concat()),
            name if self.crates.contains_key(name) => (name.to_owned(), rest.to_vec()),
            name => {
                let child = [module, std::slice::from_ref(first)].concat();
                match self.crates[krate].modules.contains_key(&child) {
                    true => (krate.to_owned(), [module, &path].concat()),
                    false => (name.to_owned(), rest.to_vec()),
                }
            }
        }
    }

    /// Whether that path is a module that users can name; an attribute may have the name of a private one.
    fn is_module(&self, krate: &str, path: &[String]) -> bool {
        let Some(sources) = self.crates.get(krate) else { return false };
        let Some((name, parent)) = path.split_last() else { return true };
        let items = sources.modules.get(parent).into_iter().flatten();
        let mut same =
            items.filter(|item| matches!(item, Item::Mod(_)) && name_of(item).as_ref() == Some(name));
        same.any(is_public)
    }

    /// Where the item of that path is defined; `None` when it is not ours or written by a macro.
    fn define(&self, krate: &str, path: &[String]) -> Option<Definition<'_>> {
        let sources = self.crates.get(krate)?;
        let (name, module) = path.split_last()?;
        let items = sources.modules.get(module)?;
        let named = |item: &&Item| is_public(item) && name_of(item).as_ref() == Some(name);
        if let Some(item) = items.iter().find(named) {
            return Some(Definition { sources, item });
        }
        items.iter().find_map(|item| {
            let Item::Use(item) = item else { return None };
            let mut leaves = Vec::new();
            flatten(&item.tree, &mut Vec::new(), &mut leaves);
            let (target, _) = leaves.into_iter().find(|(_, alias)| alias == name)?;
            let (krate, target) = self.absolute(krate, module, target);
            (target != path).then(|| self.define(&krate, &target)).flatten()
        })
    }

    /// A module and everything in it, as lines.
    fn describe(&self, shown: &str, krate: &str, path: &[String], out: &mut Vec<String>) {
        out.push(format!("mod {shown}"));
        let mut modules = Vec::new();
        for (name, (krate, target)) in self.exports(krate, path) {
            let is_module = self.is_module(&krate, &target);
            if is_module {
                modules.push((format!("{shown}::{name}"), krate.clone(), target.clone()));
            }
            match self.define(&krate, &target) {
                Some(found) => found.describe(&name, out),
                None if !is_module => out.push(format!("  {name}")),
                None => {}
            }
        }
        out.push(String::new());
        for (shown, krate, path) in modules {
            self.describe(&shown, &krate, &path, out);
        }
    }
}

impl Definition<'_> {
    fn describe(&self, name: &str, out: &mut Vec<String>) {
        let mut members = BTreeSet::new();
        let kind = match self.item {
            Item::Struct(item) => {
                let public = item.fields.iter().enumerate().filter(|(_, field)| is_pub(&field.vis));
                members.extend(public.map(|(index, field)| {
                    let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
                    format!("{name}: {}", words(&field.ty))
                }));
                "struct"
            }
            Item::Enum(item) => {
                members.extend(item.variants.iter().map(|variant| match &variant.fields {
                    Fields::Unit => variant.ident.to_string(),
                    fields => format!("{}{}", variant.ident, words(&without_attributes(fields))),
                }));
                "enum"
            }
            Item::Trait(item) => {
                members.extend(item.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(item) if !hidden(&item.attrs) => Some(words(&item.sig)),
                    TraitItem::Type(item) => Some(format!("type {}", item.ident)),
                    _ => None,
                }));
                "trait"
            }
            Item::Fn(item) => return out.push(format!("  {}", words(&signature(item)))),
            Item::Const(item) => return out.push(format!("  const {name}: {}", words(&item.ty))),
            Item::Type(item) => return out.push(format!("  type {name} = {}", words(&item.ty))),
            Item::Mod(_) => return,
            _ => "item",
        };
        for item in self.sources.modules.values().flatten() {
            let Item::Impl(block) = item else { continue };
            let syn::Type::Path(own) = &*block.self_ty else { continue };
            let own = own.path.segments.last().map(|last| last.ident.to_string());
            if block.trait_.is_some() || own != name_of(self.item) {
                continue;
            }
            members.extend(block.items.iter().filter_map(|item| match item {
                ImplItem::Fn(item) if is_pub(&item.vis) && !hidden(&item.attrs) => Some(words(&item.sig)),
                ImplItem::Const(item) if is_pub(&item.vis) => {
                    Some(format!("const {}: {}", item.ident, words(&item.ty)))
                }
                _ => None,
            }));
        }
        out.push(format!("  {kind} {name}"));
        out.extend(members.into_iter().map(|member| format!("    {member}")));
    }
}

/// The signature that callers see: `#[tool]` makes the definition out of a function, with its set-up alone.
fn signature(item: &syn::ItemFn) -> syn::Signature {
    let is_tool = |attribute: &syn::Attribute| attribute.path().is_ident("tool");
    let mut signature = item.sig.clone();
    if item.attrs.iter().any(is_tool) {
        let inputs = signature.inputs.into_iter().filter_map(|mut input| {
            let syn::FnArg::Typed(parameter) = &mut input else { return None };
            let attributes = std::mem::take(&mut parameter.attrs);
            let is_setup = |attribute: &syn::Attribute| {
                is_tool(attribute) && attribute.to_token_stream().to_string().contains("setup")
            };
            attributes.iter().any(is_setup).then_some(input)
        });
        signature.inputs = inputs.collect();
        signature.asyncness = None;
        signature.output = syn::parse_quote!(-> ToolDef);
    }
    signature
}

fn without_attributes(fields: &Fields) -> Fields {
    let mut fields = fields.clone();
    fields.iter_mut().for_each(|field| field.attrs.clear());
    fields
}

/// The paths that a `use` names, each with the name it has then.
fn flatten(tree: &UseTree, path: &mut Vec<String>, out: &mut Vec<(Vec<String>, String)>) {
    let with = |path: &[String], last: &str| match last {
        "self" => path.to_vec(),
        last => [path, &[last.to_owned()]].concat(),
    };
    match tree {
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            flatten(&tree.tree, path, out);
            path.pop();
        }
        UseTree::Name(tree) => {
            let target = with(path, &tree.ident.to_string());
            let name = target.last().unwrap().clone();
            out.push((target, name));
        }
        UseTree::Rename(tree) => out.push((with(path, &tree.ident.to_string()), tree.rename.to_string())),
        UseTree::Glob(_) => out.push((with(path, "*"), "*".to_owned())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, path, out)),
    }
}

fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Struct(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Const(item) => item.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Mod(item) => item.ident.to_string(),
        _ => return None,
    })
}

fn is_public(item: &Item) -> bool {
    match item {
        Item::Struct(item) => is_pub(&item.vis),
        Item::Enum(item) => is_pub(&item.vis),
        Item::Trait(item) => is_pub(&item.vis),
        Item::Type(item) => is_pub(&item.vis),
        Item::Const(item) => is_pub(&item.vis),
        Item::Static(item) => is_pub(&item.vis),
        Item::Fn(item) => is_pub(&item.vis),
        Item::Mod(item) => is_pub(&item.vis),
        Item::Use(item) => is_pub(&item.vis),
        _ => false,
    }
}

fn is_pub(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(item: &Item) -> bool {
    match item {
        Item::Use(item) => hidden(&item.attrs),
        Item::Mod(item) => hidden(&item.attrs),
        Item::Fn(item) => hidden(&item.attrs),
        Item::Struct(item) => hidden(&item.attrs),
        Item::Trait(item) => hidden(&item.attrs),
        _ => false,
    }
}

fn hidden(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc") && attribute.to_token_stream().to_string().contains("hidden")
    })
}

/// Rust as people write it, near enough: tokens come with a space between any two.
fn words(tokens: &impl quote::ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (long, short) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" ,", ","),
        (" ;", ";"),
        ("[ ", "["),
        (" ]", "]"),
        (" : ", ": "),
        (" :", ":"),
        (",)", ")"),
        (", )", ")"),
        ("->&", "-> &"),
        ("- >", "->"),
        (" ?", " ?"),
    ] {
        text = text.replace(long, short);
    }
    text.replace("->", " -> ").replace("  ", " ").replace("  ", " ")
}

fn api() -> String {
    let mut lines = Vec::new();
    Workspace::read().describe("toolwright", "toolwright", &[], &mut lines);
    lines.join("\n")
}

#[test]
fn the_public_api_is_the_one_that_was_meant() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/api.txt");
    let now = api();
    if std::env::var_os("TOOLWRIGHT_BLESS").is_some() {
        return std::fs::write(file, now).unwrap();
    }
    let then = std::fs::read_to_string(&file).unwrap_or_default();
    let (then, now): (Vec<&str>, Vec<&str>) = (then.lines().collect(), now.lines().collect());
    let gone: Vec<_> = then.iter().filter(|line| !now.contains(line)).collect();
    let new: Vec<_> = now.iter().filter(|line| !then.contains(line)).collect();
    assert!(
        then == now,
        "the public API is not that of api.txt; if that is meant, run the test again with TOOLWRIGHT_BLESS=1\n\
         gone: {gone:#?}\nnew: {new:#?}"
    );
}

#[test]
fn few_names_are_at_the_root() {
    let workspace = Workspace::read();
    let exports = workspace.exports("toolwright", &[]);
    let names = exports.iter().filter(|(_, (krate, path))| !workspace.is_module(krate, path));
    let names: Vec<_> = names.map(|(name, _)| name).collect();
    // `tool` is an attribute and a module.
    assert!(names.len() < MAX_ROOT_NAMES, "{names:?}");
    for name in ["Run", "Tool", "ToolContext", "ToolError", "ToolOutput", "Toolset", "Policy", "connect"] {
        assert!(exports.contains_key(name), "`{name}` is on the first page of the guide");
    }
}

/// A method with a default that is missing in the twin would be called as its default, without a word.
#[test]
fn the_twins_have_every_method_of_their_traits() {
    let workspace = Workspace::read();
    let core = &workspace.crates["toolwright_core"];
    let listed = core.modules[&vec!["erased".to_owned()]].iter().filter_map(|item| match item {
        Item::Macro(item) if item.mac.path.is_ident("erased") => Some(item.mac.tokens.to_string()),
        _ => None,
    });
    let listed: Vec<String> = listed.collect();
    assert!(listed.len() >= 7, "{listed:?}");
    for text in listed {
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let name = words.iter().filter(|word| !word.is_empty()).nth(1).unwrap();
        let after = words.iter().zip(&words[1..]).filter(|(word, _)| **word == "fn");
        let twin: BTreeSet<&str> = after.map(|(_, method)| *method).collect();
        let traits = core.modules.values().flatten().filter_map(|item| match item {
            Item::Trait(item) if item.ident == name => Some(item),
            _ => None,
        });
        let methods = traits.flat_map(|found| &found.items).filter_map(|item| match item {
            TraitItem::Fn(item) => Some(item.sig.ident.to_string()),
            _ => None,
        });
        let methods: BTreeSet<String> = methods.filter(|method| !method.ends_with("_boxed")).collect();
        let methods: BTreeSet<&str> = methods.iter().map(String::as_str).collect();
        assert_eq!(twin, methods, "`{name}` in core/src/erased.rs");
    }
}
