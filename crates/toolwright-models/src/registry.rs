//! From a name such as `anthropic/claude-sonnet-4-5` to a model that answers.
//!
//! The library does not read the environment: the caller passes a function that looks variables up.

use reqwest::Url;
use toolwright_core::{Error, ModelError, ModelOptions, Secret, nearest};
use toolwright_net::{Proxies, ProxyError};

use crate::aws::Signer;
use crate::aws::profile::{Keys, Profile, is_region};
use crate::aws::source::CredentialCache;
use crate::http::{Http, HttpLimits, Route};
use crate::model::VendorModel;
use crate::pace::{Bucket, Pace};
use crate::price::Price;
use crate::retry::RetryPolicy;
use crate::vendor::{Auth, KeyRequirement, VENDORS, Vendor, find};
use crate::wire::Wire;

/// Settings of a connection beyond the model's name. The defaults fit most.
#[derive(Debug, Clone, Default)]
pub struct ModelSettings {
    base_url: Option<String>,
    key: Option<Secret>,
    headers: Vec<(String, Secret)>,
    region: Option<String>,
    api_version: Option<String>,
    options: ModelOptions,
    price: Option<Price>,
    limits: HttpLimits,
    retry: RetryPolicy,
    pace: Option<Pace>,
    proxies: Option<Proxies>,
    blind: bool,
}

impl ModelSettings {
    /// Nothing out of the ordinary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another address than the vendor's own. The key goes there.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// The key, instead of an environment variable.
    #[must_use]
    pub fn key(mut self, key: Secret) -> Self {
        self.key = Some(key);
        self
    }

    /// A header for each request; one of the vendor's own, such as `anthropic-version`, is replaced.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into().to_ascii_lowercase(), Secret::new(value.into())));
        self
    }

    /// The region, for vendors that have them, instead of an environment variable.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// The version of the vendor's API. Only some vendors have one that can be chosen.
    #[must_use]
    pub fn api_version(mut self, version: impl Into<String>) -> Self {
        self.api_version = Some(version.into());
        self
    }

    /// How the model answers when a request does not say.
    #[must_use]
    pub fn options(mut self, options: ModelOptions) -> Self {
        self.options = options;
        self
    }

    /// Whether the model is shown pictures, which is so unless said otherwise. A server without eyes may
    /// refuse the whole conversation for one; without them, pictures are described in words.
    #[must_use]
    pub fn images(mut self, shown: bool) -> Self {
        self.blind = !shown;
        self
    }

    /// What tokens cost, instead of what this version knows.
    #[must_use]
    pub fn price(mut self, price: Price) -> Self {
        self.price = Some(price);
        self
    }

    /// Time-outs and sizes.
    #[must_use]
    pub fn limits(mut self, limits: HttpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How often failed requests are made again.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// How many requests a second; more of them wait.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Which proxies to go through, instead of those in the environment (`HTTPS_PROXY`, `HTTP_PROXY`,
    /// `ALL_PROXY`, `NO_PROXY`).
    #[must_use]
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = Some(proxies);
        self
    }
}

/// Makes the model of that name. Nothing is sent yet.
///
/// ```
/// use toolwright_models::{ConnectError, ModelSettings, connect};
///
/// let environment = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "sk-...".to_owned());
/// let model = connect("anthropic/claude-sonnet-4-5", ModelSettings::new(), environment)?;
/// assert_eq!(model.vendor().name, "anthropic");
///
/// let error = connect("openai/gpt-5", ModelSettings::new(), environment).unwrap_err();
/// assert_eq!(error.to_string(), "`openai/gpt-5` needs a key, and OPENAI_API_KEY is not set");
/// # Ok::<(), ConnectError>(())
/// ```
pub fn connect(
    name: &str,
    mut settings: ModelSettings,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<VendorModel, ConnectError> {
    let (vendor, model) = name.split_once('/').unwrap_or((name, ""));
    let Some(vendor) = find(vendor) else {
        let nearest = nearest(vendor, VENDORS.iter().map(|vendor| vendor.name)).map(str::to_owned);
        return Err(ConnectError::UnknownVendor { vendor: vendor.to_owned(), nearest });
    };
    if model.is_empty() {
        return Err(ConnectError::NoModel { vendor: vendor.name });
    }
    // A variable that is set to nothing hides no other.
    let set =
        |name: &&str| environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let look_up = |names: &[&str]| names.iter().find_map(set);
    let price = match look_up(&[PRICE_VARIABLE]) {
        Some(text) if settings.price.is_none() => {
            Some(Price::parse(&text).ok_or(ConnectError::BadPrice { text })?)
        }
        _ => settings.price.or_else(|| Price::find(vendor, model)),
    };
    let mut version = settings.api_version.take();
    if vendor.wire != Wire::Gemini
        && let Some(version) = version.take()
    {
        settings = versioned(settings, version, vendor)?;
    }
    let base = settings.base_url.or_else(|| look_up(vendor.base_url_variables));
    let base = base.or_else(|| vendor.base_url.map(str::to_owned));
    let mut base = base.ok_or(ConnectError::NoBaseUrl { vendor })?;
    let key = settings.key.or_else(|| look_up(vendor.key_variables).map(Secret::new));
    let mut signing = None;
    if let Auth::Aws { service } = vendor.auth {
        let profile = Profile::find(&environment);
        if key.is_none() || base.contains("{region}") {
            let region = region(settings.region.or_else(|| profile.region.clone()), vendor)?;
            base = base.replace("{region}", &region);
            if key.is_none() {
                signing = signing_keys(profile)?.map(|keys| (keys, region, service));
            }
        }
    }
    let mut base = base_url(&base, vendor)?;
    if vendor.wire == Wire::Gemini {
        base = with_version(base, version, || look_up(&[GEMINI_VERSION_VARIABLE]))?;
    }
    if key.is_none() && signing.is_none() && vendor.key == KeyRequirement::Required {
        return Err(ConnectError::NoKey { name: name.to_owned(), vendor });
    }
    let mut headers: Vec<(String, Secret)> = Vec::new();
    let auth = key.map(|key| match vendor.auth {
        Auth::Bearer | Auth::Aws { .. } => {
            ("authorization".to_owned(), Secret::new(format!("Bearer {}", key.expose())))
        }
        Auth::Header(name) => (name.to_owned(), key),
    });
    let fixed = vendor.headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value)));
    for (name, value) in fixed.chain(auth).chain(settings.headers) {
        headers.retain(|(known, _)| *known != name);
        headers.push((name, value));
    }
    let chosen = settings.proxies.is_some();
    let outside = match settings.proxies {
        Some(proxies) => proxies,
        None if signing.is_none() && is_here(&base) => Proxies::none(),
        None => Proxies::from_environment(&environment).map_err(ConnectError::Proxy)?,
    };
    // No proxy leads to this machine. Keys for a server here may come from far away.
    let proxies = if !chosen && is_here(&base) { Proxies::none() } else { outside.clone() };
    let signer = signing.map(|(keys, region, service)| Signer {
        keys: CredentialCache::new(keys, outside),
        region,
        service,
    });
    let route = Route {
        limits: settings.limits,
        retry: settings.retry,
        longest_after: vendor.quirks.longest_after,
        signer,
        proxies,
        bucket: settings.pace.map(Bucket::new),
    };
    let http = Http::new(&base, &headers, route).map_err(ConnectError::Http)?;
    let (name, model, options) = (name.to_owned(), model.to_owned(), settings.options);
    Ok(VendorModel { name, vendor, model, base, http, options, price, blind: settings.blind })
}

/// True for a server on this machine.
pub(crate) fn is_here(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The variable with the price of the model.
const PRICE_VARIABLE: &str = "TOOLWRIGHT_PRICE";

/// Says which version of its API is meant, in the vendor's way.
fn versioned(
    mut settings: ModelSettings,
    version: String,
    vendor: &'static Vendor,
) -> Result<ModelSettings, ConnectError> {
    match vendor.wire {
        Wire::AnthropicMessages => return Ok(settings.header("anthropic-version", version)),
        Wire::BedrockInvoke => {
            settings.options.extra.entry("anthropic_version").or_insert_with(|| version.into());
        }
        _ => return Err(ConnectError::NoVersion { vendor }),
    }
    Ok(settings)
}

/// Where Google's own clients look for the version of its API.
const GEMINI_VERSION_VARIABLE: &str = "GOOGLE_GENAI_API_VERSION";

/// An address of Google's API with its version at the end, as Google's own clients add it. One that ends in a
/// version keeps it, unless another was chosen for this model.
fn with_version(
    base: Url,
    chosen: Option<String>,
    usual: impl Fn() -> Option<String>,
) -> Result<Url, ConnectError> {
    let is_version = |last: &str| {
        let rest = last.strip_prefix('v').unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let path = base.path().trim_end_matches('/').to_owned();
    let (start, last) = path.rsplit_once('/').unwrap_or((&path, ""));
    let start = match (is_version(last), &chosen) {
        (true, None) => return Ok(base),
        (true, Some(_)) => start,
        (false, _) => &path,
    };
    let version = chosen.or_else(usual).filter(|version| version != "beta");
    let version = version.as_deref().unwrap_or("v1beta");
    if version.contains(['?', '#']) {
        let url = without_keys(&format!("{base}{version}"));
        return Err(ConnectError::BadBaseUrl { url, problem: "it must not have a `?` or `#` part" });
    }
    let mut base = base;
    base.set_path(&format!("{start}/{version}"));
    Ok(base)
}

/// The keys that sign requests, or their source; `None` when none are configured.
fn signing_keys(profile: Profile) -> Result<Option<Keys>, ConnectError> {
    let Profile { name: profile, keys, .. } = profile;
    match keys {
        Keys::Given(_) | Keys::Fetched(_) => Ok(Some(keys)),
        Keys::None => Ok(None),
        Keys::Wrong(problem) => Err(ConnectError::BadProfile { profile, problem }),
        Keys::Elsewhere(elsewhere) => Err(ConnectError::KeysElsewhere { profile, elsewhere }),
        Keys::Half(there, missing) => Err(ConnectError::HalfAKey { there, missing }),
        Keys::NoProfile => Err(ConnectError::NoProfile { profile }),
    }
}

/// A region that may become part of a host's name.
fn region(region: Option<String>, vendor: &'static Vendor) -> Result<String, ConnectError> {
    let region = region.ok_or(ConnectError::NoRegion { vendor })?;
    if is_region(&region) { Ok(region) } else { Err(ConnectError::BadRegion { region }) }
}

fn base_url(text: &str, vendor: &'static Vendor) -> Result<Url, ConnectError> {
    let shown = without_keys(text);
    let bad = |problem| ConnectError::BadBaseUrl { url: shown.clone(), problem };
    let url = Url::parse(text).map_err(|_| bad("it is not an address"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad("it must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The text is not shown: it holds a password.
        let url = format!("{}://...@{}", url.scheme(), url.host_str().unwrap_or_default());
        return Err(ConnectError::BadBaseUrl { url, problem: "a key does not belong in an address" });
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it must not have a `?` or `#` part"));
    }
    let trimmed = url.as_str().trim_end_matches('/');
    let trimmed = match vendor.wire {
        // The format's own path starts with the version.
        Wire::AnthropicMessages => trimmed.strip_suffix("/v1").unwrap_or(trimmed),
        _ => trimmed,
    };
    Url::parse(trimmed).map_err(|_| bad("it is not an address"))
}

/// An address without the parts that may hold a key: a password before an `@`, and everything after `?` or
/// `#`.
fn without_keys(text: &str) -> String {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let (start, rest) = text.split_at(end);
    match (start.rsplit_once('@'), rest.get(..1)) {
        _ if rest.contains('@') => "...".to_owned(),
        (Some((_, host)), _) => format!("...@{host}"),
        (None, Some(mark)) => format!("{start}{mark}..."),
        (None, None) => start.to_owned(),
    }
}

/// Why there is no model of that name.
#[non_exhaustive]
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are what the message names")]
pub enum ConnectError {
    /// No vendor has that name.
    UnknownVendor { vendor: String, nearest: Option<String> },
    /// There is no model after the vendor's name.
    NoModel { vendor: &'static str },
    /// The key is missing.
    NoKey { name: String, vendor: &'static Vendor },
    /// The vendor has no address of its own, and none was given.
    NoBaseUrl { vendor: &'static Vendor },
    /// The address cannot be used.
    BadBaseUrl { url: String, problem: &'static str },
    /// The vendor has regions, and none was named.
    NoRegion { vendor: &'static Vendor },
    /// The text is not the name of a region.
    BadRegion { region: String },
    /// The profile names a source of keys that is not supported.
    KeysElsewhere { profile: String, elsewhere: &'static str },
    /// The profile describes the source of its keys wrongly.
    BadProfile { profile: String, problem: String },
    /// There is an access key without its secret key.
    HalfAKey { there: &'static str, missing: &'static str },
    /// The environment names a profile that is in no file.
    NoProfile { profile: String },
    /// The variable that is to hold the key is not set.
    NoVariable { name: String, variable: String },
    /// The vendor's API has no version that could be chosen.
    NoVersion { vendor: &'static Vendor },
    /// The price in the environment cannot be read.
    BadPrice { text: String },
    /// A proxy cannot be used.
    Proxy(ProxyError),
    /// HTTP cannot be set up.
    Http(ModelError),
}

impl ConnectError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        let list = |names: &[&str]| names.join(" or ");
        match self {
            ConnectError::UnknownVendor { nearest: Some(nearest), .. } => {
                Some(format!("did you mean `{nearest}/...`?"))
            }
            ConnectError::UnknownVendor { .. } => {
                let names: Vec<_> = VENDORS.iter().map(|vendor| vendor.name).collect();
                Some(format!("models are named vendor/model; known vendors: {}", names.join(", ")))
            }
            ConnectError::NoModel { vendor } => Some(format!("write `{vendor}/` and the model's name")),
            ConnectError::NoKey { vendor: Vendor { auth: Auth::Aws { .. }, key_variables, .. }, .. } => {
                Some(format!(
                    "put a bearer token into {}, keys into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile with keys, a \
                     role or single sign-on into ~/.aws",
                    list(key_variables)
                ))
            }
            ConnectError::KeysElsewhere { profile, .. } => Some(format!(
                "`aws configure export-credentials --profile {profile} --format env` prints keys to put into the \
                 environment"
            )),
            ConnectError::NoProfile { .. } => {
                Some("AWS_PROFILE names a section of ~/.aws/credentials or ~/.aws/config".to_owned())
            }
            ConnectError::NoRegion { .. } => {
                Some("put it into the environment variable AWS_REGION, for example us-east-1".to_owned())
            }
            ConnectError::NoVariable { .. }
            | ConnectError::HalfAKey { .. }
            | ConnectError::BadProfile { .. } => None,
            ConnectError::NoVersion { .. } => Some("put the version into `base_url`, or a header".to_owned()),
            ConnectError::BadPrice { .. } => Some(format!(
                "write dollars for a million tokens read and written, for example {PRICE_VARIABLE}=3,15"
            )),
            ConnectError::BadRegion { .. } => Some("regions are named like us-east-1".to_owned()),
            ConnectError::NoKey { vendor, .. } => {
                Some(format!("put the key into the environment variable {}", list(vendor.key_variables)))
            }
            ConnectError::NoBaseUrl { vendor } => {
                Some(format!("put it into the environment variable {}", list(vendor.base_url_variables)))
            }
            ConnectError::Proxy(_) => Some(
                "`NO_PROXY` lists hosts to reach without a proxy; `proxy: none` disables proxies".to_owned(),
            ),
            ConnectError::BadBaseUrl { .. } | ConnectError::Http(_) => None,
        }
    }
}

impl std::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConnectError::UnknownVendor { vendor, .. } => write!(f, "there is no vendor `{vendor}`"),
            ConnectError::NoModel { vendor } => write!(f, "`{vendor}` is a vendor, not a model"),
            ConnectError::NoKey { name, vendor } => {
                let variables = vendor.key_variables.join(" or ");
                write!(f, "`{name}` needs a key, and {variables} is not set")
            }
            ConnectError::NoBaseUrl { vendor } => {
                let variables = vendor.base_url_variables.join(" or ");
                write!(f, "`{}` needs the address of a server, and {variables} is not set", vendor.name)
            }
            ConnectError::BadBaseUrl { url, problem } => write!(f, "`{url}` cannot be used: {problem}"),
            ConnectError::NoRegion { vendor } => {
                write!(
                    f,
                    "`{}` needs a region, and neither AWS_REGION nor the profile names one",
                    vendor.name
                )
            }
            ConnectError::NoVariable { name, variable } => {
                write!(f, "`{name}` needs a key, and {variable} is not set")
            }
            ConnectError::NoVersion { vendor } => {
                write!(f, "the API of `{}` has no version that could be chosen", vendor.name)
            }
            ConnectError::BadPrice { text } => write!(f, "{PRICE_VARIABLE}={text} is not a price"),
            ConnectError::BadRegion { region } => write!(f, "{region:?} is not a region"),
            ConnectError::KeysElsewhere { profile, elsewhere } => {
                write!(f, "the profile `{profile}` holds no keys but {elsewhere}, which is not supported")
            }
            ConnectError::BadProfile { profile, problem } => {
                write!(f, "the profile `{profile}` of Amazon's files cannot be used: {problem}")
            }
            ConnectError::HalfAKey { there, missing } => {
                write!(f, "{there} has an access key of Amazon's but no `{missing}`")
            }
            ConnectError::NoProfile { profile } => {
                write!(f, "there is no profile `{profile}` in Amazon's files")
            }
            ConnectError::Proxy(error) => write!(f, "{error}"),
            ConnectError::Http(_) => f.write_str("the connection cannot be set up"),
        }
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        let hint = error.hint();
        let error = match error {
            ConnectError::NoKey { .. }
            | ConnectError::NoBaseUrl { .. }
            | ConnectError::NoRegion { .. }
            | ConnectError::NoVariable { .. } => Error::missing_variable(error),
            _ => Error::configuration(error),
        };
        error.with_hint(hint)
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectError::Http(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(name: &str, settings: ModelSettings) -> (String, Option<String>) {
        let error = connect(name, settings, |_| None).unwrap_err();
        (error.to_string(), error.hint())
    }

    #[test]
    fn what_is_missing_is_named() {
        let (text, hint) = failing("antropic/x", ModelSettings::new());
        assert_eq!(text, "there is no vendor `antropic`");
        assert_eq!(hint.as_deref(), Some("did you mean `anthropic/...`?"));
        assert_eq!(failing("anthropic/", ModelSettings::new()).0, "`anthropic` is a vendor, not a model");
        let (text, hint) = failing("google/g", ModelSettings::new());
        assert_eq!(text, "`google/g` needs a key, and GEMINI_API_KEY or GOOGLE_API_KEY is not set");
        assert!(hint.is_some_and(|hint| hint.contains("GEMINI_API_KEY")));
        let (text, _) = failing("openai-compatible/m", ModelSettings::new());
        assert_eq!(
            text,
            "`openai-compatible` needs the address of a server, and TOOLWRIGHT_BASE_URL is not set"
        );
        for url in ["nonsense", "file:///etc/passwd", "http://h/v1?x=1"] {
            let (text, _) = failing("openai-compatible/m", ModelSettings::new().base_url(url));
            assert!(text.contains("cannot be used"), "{text}");
        }
        for (url, shown) in [
            ("http://me:hunter2@h/v1", "http://...@h"),
            ("http://h/v1?key=hunter2", "http://h/v1?..."),
            ("http://h/v1#hunter2", "http://h/v1#..."),
            ("http://h:99999/v1?key=hunter2", "http://h:99999/v1?..."),
            ("http://me:hunter2@h:99999/v1", "...@h:99999/v1"),
            ("http://h/v1?mail=a@b&key=hunter2", "..."),
        ] {
            let (text, _) = failing("ollama/m", ModelSettings::new().base_url(url));
            assert!(text.starts_with(&format!("`{shown}` cannot be used: ")), "{text}");
        }
    }

    #[test]
    fn keys_and_addresses_come_from_where_users_keep_them_and_are_never_shown() {
        for vendor in VENDORS {
            let environment = |name: &str| match name {
                "TOOLWRIGHT_BASE_URL" => Some("http://127.0.0.1:9/v1".to_owned()),
                "AWS_REGION" => Some("us-east-1".to_owned()),
                name if name.ends_with("_API_KEY") || name == "AWS_BEARER_TOKEN_BEDROCK" => {
                    Some("sk-0123456789".to_owned())
                }
                _ => None,
            };
            let model = connect(&format!("{}/a/b", vendor.name), ModelSettings::new(), environment).unwrap();
            assert_eq!((model.model.as_str(), model.vendor.name), ("a/b", vendor.name));
            assert!(!format!("{model:?}").contains("0123456789"), "{}", vendor.name);
        }
    }

    /// Google's clients add a version to what the variable says, too; theirs is `v1` since google-genai 3.
    #[test]
    fn addresses_mean_what_they_mean_to_the_vendors_own_clients() {
        let base = |name: &str, settings: ModelSettings, pairs: &'static [(&str, &str)]| {
            let environment = move |name: &str| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
            };
            let model = connect(name, settings.key(Secret::new("k")), environment).unwrap();
            model.base.as_str().trim_end_matches('/').to_owned()
        };
        let new = ModelSettings::new;
        const GOOGLE: &str = "https://generativelanguage.googleapis.com";
        assert_eq!(base("google/g", new(), &[]), format!("{GOOGLE}/v1beta"));
        assert_eq!(base("google/g", new().api_version("v1"), &[]), format!("{GOOGLE}/v1"));
        assert_eq!(base("google/g", new(), &[("GOOGLE_GENAI_API_VERSION", "v1")]), format!("{GOOGLE}/v1"));
        assert_eq!(
            base("google/g", new(), &[("GOOGLE_GENAI_API_VERSION", "beta")]),
            format!("{GOOGLE}/v1beta")
        );
        for (set, wanted) in [
            ("http://h:1", "http://h:1/v1beta"),
            ("http://h:1/", "http://h:1/v1beta"),
            ("http://v1", "http://v1/v1beta"),
            ("http://h/gemini/", "http://h/gemini/v1beta"),
            ("http://h/v1alpha/", "http://h/v1alpha"),
            ("http://h/vertex", "http://h/vertex/v1beta"),
        ] {
            let pairs: &'static [(&str, &str)] = Box::leak(Box::new([("GOOGLE_GEMINI_BASE_URL", set)]));
            assert_eq!(base("google/g", new(), pairs), wanted);
            assert_eq!(base("google/g", new().base_url(set), &[]), wanted);
        }
        const PROXY: &[(&str, &str)] =
            &[("GOOGLE_GEMINI_BASE_URL", "http://h/v1beta"), ("GOOGLE_GENAI_API_VERSION", "v2")];
        assert_eq!(base("google/g", new(), PROXY), "http://h/v1beta");
        assert_eq!(base("google/g", new().api_version("v1"), PROXY), "http://h/v1");
        const OPENAI: &[(&str, &str)] =
            &[("OPENAI_BASE_URL", "http://h/v1/"), ("ANTHROPIC_BASE_URL", "http://h/a/")];
        assert_eq!(base("openai/m", new(), OPENAI), "http://h/v1");
        assert_eq!(base("anthropic/m", new(), OPENAI), "http://h/a");
    }

    #[test]
    fn a_variable_that_is_set_to_nothing_hides_no_other() {
        let environment = |name: &str| match name {
            "GEMINI_API_KEY" => Some(" ".to_owned()),
            "GOOGLE_API_KEY" => Some("k".to_owned()),
            _ => None,
        };
        assert!(connect("google/g", ModelSettings::new(), environment).is_ok());
    }

    #[test]
    fn bedrock_takes_a_token_or_keys_and_says_what_is_missing() {
        let with = |pairs: &'static [(&str, &str)]| {
            let environment = move |name: &str| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
            };
            connect("bedrock/m", ModelSettings::new(), environment)
        };
        let problem = |pairs| with(pairs).unwrap_err().to_string();
        assert_eq!(
            problem(&[]),
            "`bedrock` needs a region, and neither AWS_REGION nor the profile names one"
        );
        let text = problem(&[("AWS_REGION", "us-east-1")]);
        assert_eq!(text, "`bedrock/m` needs a key, and AWS_BEARER_TOKEN_BEDROCK is not set");
        let evil = problem(&[("AWS_BEARER_TOKEN_BEDROCK", "token"), ("AWS_REGION", "evil.example/#")]);
        assert_eq!(evil, "\"evil.example/#\" is not a region");

        let model =
            with(&[("AWS_BEARER_TOKEN_BEDROCK", "token"), ("AWS_DEFAULT_REGION", "eu-west-1")]).unwrap();
        assert_eq!(model.base.as_str(), "https://bedrock-runtime.eu-west-1.amazonaws.com/");
        let keys: &[_] = &[
            ("AWS_ACCESS_KEY_ID", "AKID"),
            ("AWS_SECRET_ACCESS_KEY", "very-secret"),
            ("AWS_SESSION_TOKEN", "very-temporary"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:4577"),
        ];
        let model = with(keys).unwrap();
        assert_eq!(model.base.as_str(), "http://127.0.0.1:4577/");
        assert!(!format!("{model:?}").contains("very-"), "{model:?}");
    }
}
