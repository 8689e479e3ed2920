//! Which model answers: the one that is named, or the best there is on this machine.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use toolwright::ToolError;
use toolwright::file::FileModels;
use toolwright::model::vendor::VENDORS;
use toolwright::model::{ConnectError, DynModel, ModelConfig, Offer, offered};
use toolwright::testing::ScriptedModel;
use toolwright_core::nearest;

use crate::console::Console;
use crate::opening::FileChoice;
use crate::prompt::printable;
use crate::report::Usage;
use crate::{demo, files};

/// What is used of each vendor when only its key is there.
const USUAL: &[(&str, &str)] = &[
    ("anthropic", "claude-sonnet-4-5"),
    ("openai", "gpt-5"),
    ("google", "gemini-2.5-flash"),
    ("openrouter", "anthropic/claude-sonnet-4.5"),
    ("mistral", "mistral-large-latest"),
    ("deepseek", "deepseek-chat"),
    ("groq", "llama-3.3-70b-versatile"),
    ("xai", "grok-4"),
];

const DEMO: &str =
    "no key and no local model were found, so the built-in demo answers: a script, not an intelligence";

/// What to do when there is none.
pub const NO_MODEL: &str = "\
name one with --model or TOOLWRIGHT_MODEL, set a vendor's key (such as ANTHROPIC_API_KEY), or start a local server \
(`ollama serve`, `llama-server -m MODEL.gguf --jinja`). --model scripted/FILE plays the replies in a file, and --model \
demo is the built-in demo, which has tools of its own";

/// The models of a file, by name.
pub type Named = FileModels;

/// A model that a tool of a file asks for: one of the file's, or `vendor/model`.
pub fn lent(console: &Console, name: &str, named: &Named) -> Option<Result<Arc<DynModel>, ToolError>> {
    if !named.contains_key(name) && !name.contains('/') {
        return None;
    }
    let model = open(console, name, named).map(Arc::from);
    Some(model.map_err(|error| ToolError::new(format!("the model `{name}` cannot be used: {error:#}"))))
}

/// The model that is named, by itself or in the file; without a name the file's `default`, the one of
/// `TOOLWRIGHT_MODEL`, of a key, or of a local server. What was chosen without being named is said.
pub fn choose(console: &Console, name: Option<&str>, named: &Named) -> anyhow::Result<Box<DynModel>> {
    if let Some(name) = name.or_else(|| named.contains_key("default").then_some("default")) {
        return open(console, name, named);
    }
    let open = |name: &str| self::open(console, name, named);
    if let Some(name) = wished() {
        return open(&name);
    }
    if let Some((variable, name)) = by_key() {
        console
            .say(format_args!("{variable} is set, so {name} answers (--model demo for the built-in demo)"));
        return open(&name);
    }
    if let Some((what, model)) = by_server() {
        let name = &model.model;
        console.say(format_args!(
            "found a local {what}, so {name} answers (--model demo for the built-in demo)"
        ));
        return connect(console, &model);
    }
    // The demo tells its own story, with its own tools; with others it would be wrong.
    let error = Usage::new("there is no model to answer: no key is set, and no local server was found");
    Err(error.hint(NO_MODEL).into())
}

/// The model that a section of the file refers to. A name that the file does not explain is a mistake where
/// it explains others; where it explains none, as files of llm-workers do, another model stands in, which is
/// said.
pub fn choose_for(console: &Console, model_ref: &str, named: &Named) -> anyhow::Result<Box<DynModel>> {
    if named.contains_key(model_ref) || model_ref.contains('/') {
        return open(console, model_ref, named);
    }
    let shown = printable(model_ref);
    if model_ref != "default" && !named.is_empty() {
        let error = Usage::new(format!("there is no model `{shown}`, which `chat.model_ref` names"));
        let names = named.keys().map(String::as_str);
        let hint = match nearest(model_ref, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the file names {}; or write vendor/model", names.collect::<Vec<_>>().join(", ")),
        };
        return Err(error.hint(hint).into());
    }
    let model = choose(console, None, named)?;
    if model_ref != "default" {
        console.say(format_args!(
            "the file does not say which model `{shown}` is (`chat.model_ref`), so {} answers",
            printable(model.name())
        ));
    }
    Ok(model)
}

/// The file of tools: the one that is named, or the default one. The demo has its own.
pub fn file_for(
    console: &Console,
    model: Option<&str>,
    named: Option<PathBuf>,
) -> anyhow::Result<Option<FileChoice>> {
    if !model.is_some_and(is_demo) {
        return Ok(files::choose(console, named));
    }
    match named {
        None => Ok(None),
        Some(file) => {
            let error =
                Usage::new(format!("the demo has tools of its own, and cannot use `{}`", file.display()));
            Err(error.hint("leave out the file, or name another model").into())
        }
    }
}

fn is_demo(name: &str) -> bool {
    name == "demo" || name == demo::NAME
}

/// The model that the environment names.
pub fn wished() -> Option<String> {
    std::env::var("TOOLWRIGHT_MODEL").ok().filter(|name| !name.is_empty())
}

/// True when the demo is to answer: it is named, or nothing is and there is nothing else here, which is said.
pub fn demo_answers(console: &Console, name: Option<&str>) -> bool {
    if let Some(name) = name.map(str::to_owned).or_else(wished) {
        return is_demo(&name);
    }
    let none = by_key().is_none() && by_server().is_none();
    if none {
        console.say(DEMO);
    }
    none
}

/// The first vendor whose key is set, and its usual model.
pub fn by_key() -> Option<(&'static str, String)> {
    keys().into_iter().next()
}

/// The variables of keys that are set, and the usual models of their vendors.
pub fn keys() -> Vec<(&'static str, String)> {
    let set = |variable: &&&str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let found = USUAL.iter().filter_map(|(name, model)| {
        let vendor = VENDORS.iter().find(|vendor| vendor.name == *name)?;
        let variable = vendor.key_variables.iter().find(set)?;
        Some((*variable, format!("{name}/{model}")))
    });
    found.collect()
}

/// A place where a model server may listen.
pub struct Local {
    pub what: &'static str,
    /// The vendor whose models it has.
    vendor: &'static str,
    /// `host:port`.
    pub address: String,
}

/// Where model servers listen on this machine: where their own variables point, which is looked at first, or
/// the usual places.
pub fn locals() -> Vec<Local> {
    let (llama, ollama) = (llama_host(), ollama_host());
    let named_first = ollama.is_some() && llama.is_none();
    let address = llama.unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let llama = Local { what: "llama.cpp server", vendor: "llama.cpp", address };
    let address = ollama.unwrap_or_else(|| "127.0.0.1:11434".to_owned());
    let ollama = Local { what: "Ollama server", vendor: "ollama", address };
    if named_first { vec![ollama, llama] } else { vec![llama, ollama] }
}

/// The address in `LLAMA_ARG_HOST` and `LLAMA_ARG_PORT`, which `llama-server` reads too.
fn llama_host() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (host, port) = (set("LLAMA_ARG_HOST"), set("LLAMA_ARG_PORT"));
    if host.is_none() && port.is_none() {
        return None;
    }
    let port: u16 = port.map_or(Some(8080), |port| port.parse().ok())?;
    reached(&host.unwrap_or_else(|| "127.0.0.1".to_owned())).map(|host| format!("{host}:{port}"))
}

/// A host as it is reached from here: a server that listens on every address is on this machine's own.
fn reached(host: &str) -> Option<String> {
    let host = host.replace("0.0.0.0", "127.0.0.1");
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    (!host.is_empty() && host.chars().all(plain)).then_some(host)
}

/// The address in `OLLAMA_HOST`, read as Ollama reads it: it may leave out the scheme, the host and the port.
fn ollama_url() -> Option<String> {
    ollama_url_of(&std::env::var("OLLAMA_HOST").ok()?)
}

fn ollama_url_of(set: &str) -> Option<String> {
    let (scheme, usual, rest) = match set.split_once("://") {
        Some(("https", rest)) => ("https", 443, rest),
        Some(("http", rest)) => ("http", 80, rest),
        Some(_) => return None,
        None => ("http", 11434, set),
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = if host.starts_with(':') { format!("127.0.0.1{host}") } else { host.to_owned() };
    let host = reached(&host)?;
    // An IPv6 address stands in brackets and is full of colons.
    let after = host.rsplit_once(']').map_or(host.as_str(), |(_, after)| after);
    let port = if after.contains(':') { String::new() } else { format!(":{usual}") };
    let path = path.trim_matches('/');
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    Some(format!("{scheme}://{host}{port}{path}"))
}

/// The same as `host:port`, where that is all there is to it.
fn ollama_host() -> Option<String> {
    ollama_url()?.strip_prefix("http://").filter(|rest| !rest.contains('/')).map(str::to_owned)
}

/// A model server that answers, and its first model.
pub fn by_server() -> Option<(&'static str, ModelConfig)> {
    let found = |local: Local| Some((local.what, local.models().into_iter().next()?));
    locals().into_iter().find_map(found)
}

impl Local {
    /// The most models of one server that are listed.
    const MOST: usize = 100;

    /// The models it has; none when it does not answer.
    pub fn models(&self) -> Vec<ModelConfig> {
        let offers = offers(&format!("http://{}/v1", self.address));
        let model = |offer: Offer| ModelConfig {
            model: format!("{}/{}", self.vendor, offer.name),
            images: offer.images,
            ..ModelConfig::default()
        };
        offers.into_iter().take(Self::MOST).map(model).collect()
    }
}

/// What the server at an address has; nothing when it does not answer at once.
fn offers(base: &str) -> Vec<Offer> {
    let asked = offered(base, Duration::from_millis(200), Duration::from_secs(1));
    tokio::task::block_in_place(|| Handle::current().block_on(asked)).unwrap_or_default()
}

/// A model of a llama.cpp server that says whether it sees: without a projector, a picture would end the
/// conversation.
fn with_sight(mut config: ModelConfig) -> ModelConfig {
    let name = config.full_name();
    let Some(("llama.cpp", model)) = name.split_once('/').filter(|_| config.images.is_none()) else {
        return config;
    };
    let set = || std::env::var("TOOLWRIGHT_BASE_URL").ok().filter(|url| !url.is_empty());
    let found = || locals().into_iter().find(|local| local.vendor == "llama.cpp");
    let base = config.base_url.clone().or_else(set);
    let base = base.or_else(|| found().map(|local| format!("http://{}/v1", local.address)));
    let offers = base.map(|base| offers(&base)).unwrap_or_default();
    // A server with a single model answers with it to any name.
    let only = offers.first().filter(|_| offers.len() == 1);
    config.images = offers.iter().find(|offer| offer.name == model).or(only).and_then(|offer| offer.images);
    config
}

/// A connection to an address, if something listens there.
pub fn listens(address: &str) -> Option<TcpStream> {
    let address = address.to_socket_addrs().ok()?.next()?;
    TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok()
}

/// The model of a name: one of the file's, or `vendor/model`.
pub fn open(console: &Console, name: &str, named: &Named) -> anyhow::Result<Box<DynModel>> {
    if let Some(config) = named.get(name) {
        return connect(console, &with_sight(config.clone()));
    }
    if name == "demo" {
        return Ok(Box::new(demo::Demo::new(console)));
    }
    if name.contains('/') {
        return connect(
            console,
            &with_sight(ModelConfig { model: name.to_owned(), ..ModelConfig::default() }),
        );
    }
    let error = Usage::new(format!("there is no model `{}`", printable(name)));
    let vendors: Vec<_> = VENDORS.iter().map(|vendor| vendor.name).collect();
    let mut hint = format!("models are named vendor/model; vendors: scripted, {}", vendors.join(", "));
    if !named.is_empty() {
        let names: Vec<_> = named.keys().map(String::as_str).collect();
        hint = format!("the file names {}; other {hint}", names.join(", "));
    }
    Err(error.hint(hint).into())
}

/// The model as it is configured. Nobody is asked anything yet.
pub fn connect(console: &Console, config: &ModelConfig) -> anyhow::Result<Box<DynModel>> {
    let name = config.full_name();
    match name.split_once('/') {
        Some(("scripted", "demo")) => Ok(Box::new(demo::Demo::new(console))),
        Some(("scripted", path)) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Usage::new(format!("cannot read the script `{path}`: {error}")))?;
            let model = ScriptedModel::from_yaml(&text).map_err(|error| {
                let usage = Usage::new(format!("`{path}`: {error}"));
                match error.hint() {
                    Some(hint) => usage.hint(hint),
                    None => usage,
                }
            })?;
            Ok(Box::new(model.named(&name)))
        }
        _ => {
            let model = config.connect(|variable| {
                let set = std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
                set.or_else(|| {
                    let address = match name.split_once('/')?.0 {
                        "ollama" => ollama_url(),
                        "llama.cpp" => llama_host().map(|host| format!("http://{host}")),
                        _ => None,
                    };
                    address.filter(|_| variable == "TOOLWRIGHT_BASE_URL").map(|at| format!("{at}/v1"))
                })
            });
            Ok(Box::new(model.map_err(unusable)?))
        }
    }
}

fn unusable(error: ConnectError) -> Usage {
    let hint = error.hint();
    let usage = Usage::new(printable(&format!("{:#}", anyhow::Error::new(error))));
    match hint {
        Some(hint) => usage.hint(hint),
        None => usage,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    /// A server that answers with this, once; gives its address.
    fn answering(body: &'static str) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0];
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                head.push(byte[0]);
            }
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        });
        address
    }

    /// As llama.cpp answers.
    const THREE: &str = r#"{"data": [{"id": "a", "architecture": {"input_modalities": ["text"]}},
        {"id": "b", "architecture": {"input_modalities": ["text", "image"]}}, {"id": "c"}]}"#;
    const ONE: &str = r#"{"data": [{"id": "m.gguf", "architecture": {"input_modalities": ["text"]}}]}"#;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_model_that_is_named_says_whether_it_sees() {
        let sees = |list: &'static str, model: &str, images: Option<bool>| {
            let base_url = Some(format!("http://{}/v1", answering(list)));
            let model = model.to_owned();
            with_sight(ModelConfig { model, base_url, images, ..ModelConfig::default() }).images
        };
        assert_eq!(sees(THREE, "llama.cpp/a", None), Some(false));
        assert_eq!(sees(THREE, "llama.cpp/b", None), Some(true));
        assert_eq!(sees(THREE, "llama.cpp/other", None), None);
        assert_eq!(sees(ONE, "llama.cpp/any", None), Some(false));
        assert_eq!(sees(ONE, "llama.cpp/any", Some(true)), Some(true), "the setting wins over the guess");
        assert_eq!(sees("no", "llama.cpp/any", None), None);
        assert_eq!(sees(ONE, "vllm/m.gguf", None), None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_that_is_found_says_whether_its_models_see() {
        let address = answering(THREE);
        let local = Local { what: "llama.cpp server", vendor: "llama.cpp", address };
        let models: Vec<_> = local.models().into_iter().map(|model| (model.model, model.images)).collect();
        let wanted = [("llama.cpp/a", Some(false)), ("llama.cpp/b", Some(true)), ("llama.cpp/c", None)];
        assert_eq!(models, wanted.map(|(name, images)| (name.to_owned(), images)));
    }

    #[test]
    fn the_variable_of_ollama_is_read_as_ollama_reads_it() {
        for (set, url) in [
            ("", None),
            ("1.2.3.4", Some("http://1.2.3.4:11434")),
            ("0.0.0.0", Some("http://127.0.0.1:11434")),
            (":56789", Some("http://127.0.0.1:56789")),
            ("http://1.2.3.4", Some("http://1.2.3.4:80")),
            ("https://x.example", Some("https://x.example:443")),
            ("https://x.example:56789/", Some("https://x.example:56789")),
            ("https://x.example/ollama/", Some("https://x.example:443/ollama")),
            ("[::1]", Some("http://[::1]:11434")),
            ("[::1]:1234", Some("http://[::1]:1234")),
            ("ftp://x", None),
        ] {
            assert_eq!(ollama_url_of(set).as_deref(), url, "{set}");
        }
    }
}
