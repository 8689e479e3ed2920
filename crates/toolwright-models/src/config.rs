//! The `models` section of a file: models by name, with all their settings.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolwright_core::{
    DataError, Error, ModelError, ModelErrorKind, ModelOptions, PathSegment, Secret, read_data,
};
use toolwright_net::Proxies;

use crate::http::HttpLimits;
use crate::model::VendorModel;
use crate::pace::Pace;
use crate::price::Price;
use crate::registry::{ConnectError, ModelSettings, connect};
use crate::retry::RetryPolicy;

/// The settings of one model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// `vendor/model`; or the model alone, with the vendor in `provider`.
    pub model: String,
    /// The vendor, when `model` does not name it.
    #[serde(default)]
    pub provider: Option<String>,
    /// Another address than the vendor's own.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The environment variable that holds the key, when it is not the usual one.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The region, for vendors that have them.
    #[serde(default)]
    pub region: Option<String>,
    /// The version of the vendor's API.
    #[serde(default)]
    pub api_version: Option<String>,
    /// Headers for each request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The longest silence, in seconds.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// The most further tries of a request that failed.
    #[serde(default)]
    pub retries: Option<u32>,
    /// How many requests a second.
    #[serde(default)]
    pub rate_limiter: Option<Pace>,
    /// A proxy to go through, instead of the one in the environment; `none` disables proxies.
    #[serde(default)]
    pub proxy: Option<String>,
    /// The most tokens to write.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// How adventurous to be.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Where to stop.
    #[serde(default)]
    pub stop: Vec<String>,
    /// Whether tools go out in the vendor's strict mode, where their schemas allow it.
    #[serde(default)]
    pub strict: Option<bool>,
    /// Whether the vendor is asked to keep what stays the same from turn to turn.
    #[serde(default)]
    pub cache: Option<bool>,
    /// Whether it is shown pictures. They are described to a model that cannot see.
    #[serde(default)]
    pub images: Option<bool>,
    /// What tokens cost.
    #[serde(default, alias = "pricing")]
    pub price: Option<Price>,
    /// Fields for the vendor as they are.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// What llm-workers has in `config`: some of the above, under LangChain's names. What is not here goes to the
/// vendor as it is.
const CONFIG: [(&str, &str); 17] = [
    ("temperature", "temperature"),
    ("max_tokens", "max_tokens"),
    ("max_output_tokens", "max_tokens"),
    ("max_completion_tokens", "max_tokens"),
    ("stop", "stop"),
    ("stop_sequences", "stop"),
    ("timeout", "timeout"),
    ("request_timeout", "timeout"),
    ("default_request_timeout", "timeout"),
    ("max_retries", "retries"),
    ("base_url", "base_url"),
    ("openai_api_base", "base_url"),
    ("anthropic_api_url", "base_url"),
    ("openai_proxy", "proxy"),
    ("anthropic_proxy", "proxy"),
    ("default_headers", "headers"),
    ("model_kwargs", "extra"),
];

/// Keys that configure LangChain itself; no vendor accepts them.
const OF_LANGCHAIN: [&str; 18] = [
    "output_version",
    "use_responses_api",
    "streaming",
    "stream_usage",
    "disable_streaming",
    "verbose",
    "http_client",
    "http_async_client",
    "http_socket_options",
    "callbacks",
    "callback_manager",
    "custom_get_token_ids",
    "tags",
    "metadata",
    "profile",
    "name",
    "tiktoken_model_name",
    "include_response_headers",
];

/// Whether a name is that of a secret: it must be neither in a request's body nor in a file.
fn is_key(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let ends = ["api_key", "_token", "_password", "access_key_id"];
    word.contains("secret") || word == "password" || ends.iter().any(|end| word.ends_with(end))
}

/// A `models` section that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(DataError);

impl ConfigError {
    /// What is wrong, and the way to it in the section.
    pub fn misfit(&self) -> &DataError {
        &self.0
    }
}

/// The configuration of models stands in a file, or a text like one.
impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        let hint = error.misfit().hint.clone();
        Error::file(error).with_hint(hint)
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ConfigError {}

impl ModelConfig {
    /// Reads a `models` section: a map of names to models, or a list of models with a `name`. A model is a
    /// text (`vendor/model`) or a map.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolwright_models::ModelConfig;
    ///
    /// let models = ModelConfig::read(&json!({
    ///     "fast": "ollama/qwen3",
    ///     "default": {"model": "anthropic/claude-sonnet-4-5", "max_tokens": 4000, "price": {"input": 3, "output": 15}},
    /// }))?;
    /// assert_eq!(models["fast"].model, "ollama/qwen3");
    /// assert_eq!(models["default"].max_tokens, Some(4000));
    /// # Ok::<(), toolwright_models::ConfigError>(())
    /// ```
    pub fn read(section: &Value) -> Result<BTreeMap<String, ModelConfig>, ConfigError> {
        let mut models = BTreeMap::new();
        let mut add = |name: &str, model: Value| {
            let model =
                Self::one(model).map_err(|misfit| misfit.about(format_args!("the model `{name}`")))?;
            match models.insert(name.to_owned(), model) {
                Some(_) => Err(DataError::new(format!("there are two models `{name}`"))),
                None => Ok(()),
            }
        };
        let mut add_item = |model: &Value| {
            let Value::Object(mut model) = model.clone() else {
                return Err(DataError::new("each model of a list must be a map with a `name`"));
            };
            let Some(Value::String(name)) = model.shift_remove("name") else {
                return Err(DataError::new("each model of a list needs a `name`"));
            };
            add(&name, Value::Object(model))
        };
        let read = match section {
            Value::Array(list) => {
                let mut items = list.iter().enumerate();
                items.try_for_each(|(index, model)| add_item(model).map_err(|misfit| misfit.inside(index)))
            }
            Value::Object(map) => map.iter().try_for_each(|(name, model)| {
                add(name, model.clone()).map_err(|misfit| misfit.inside(name.as_str()))
            }),
            _ => Err(DataError::new("`models` must be a map of names to models, or a list")),
        };
        read.map_err(ConfigError)?;
        Ok(models)
    }

    fn one(model: Value) -> Result<ModelConfig, DataError> {
        let model: ModelConfig = match model {
            Value::String(model) => ModelConfig { model, ..ModelConfig::default() },
            Value::Object(mut model) => {
                let config = match model.shift_remove("config") {
                    Some(Value::Object(config)) => config,
                    _ => Map::new(),
                };
                let beside: Vec<String> = model.keys().cloned().collect();
                take_config(&mut model, config.clone())?;
                let price = ["price", "pricing"].into_iter().find(|key| model.contains_key(*key));
                if let Some(key) = price
                    && let Some(Value::Object(price)) = model.get_mut(key)
                    && let Some(currency) = price.shift_remove("currency")
                    && !currency.as_str().is_some_and(|currency| currency.eq_ignore_ascii_case("usd"))
                {
                    let told = format!(
                        "`{key}.currency` is {currency}, and costs are counted in US dollars: give the prices in `USD`"
                    );
                    return Err(DataError::new(told).inside("currency").inside(key));
                }
                read_data(&Value::Object(model)).map_err(|misfit| where_written(misfit, &beside, &config))?
            }
            _ => return Err(DataError::new("it is a text or a map")),
        };
        let seconds = model.timeout.map_or(1.0, |seconds| seconds);
        if !(seconds > 0.0 && seconds <= 86_400.0) {
            let told = "`timeout` must be a number of seconds, at most a day";
            return Err(DataError::new(told).inside("timeout"));
        }
        if let Some(problem) = model.rate_limiter.and_then(|pace| pace.problem()) {
            return Err(DataError::new(format!("`rate_limiter`: {problem}")).inside("rate_limiter"));
        }
        let prices = model
            .price
            .iter()
            .flat_map(|price| [Some(price.input), Some(price.output), price.cache_read, price.cache_write]);
        if prices.flatten().any(|price| !price.is_finite() || price < 0.0) {
            return Err(DataError::new("a price cannot be negative").inside("price"));
        }
        Ok(model)
    }

    /// The model's full name, `vendor/model`.
    pub fn full_name(&self) -> String {
        match &self.provider {
            // As LangChain calls them.
            Some(provider) => {
                let vendor = match provider.as_str() {
                    "google_genai" | "google_vertexai" => "google",
                    "bedrock_converse" => "bedrock",
                    other => other,
                };
                format!("{vendor}/{}", self.model)
            }
            None => self.model.clone(),
        }
    }

    /// Makes the model. Nothing is sent yet.
    pub fn connect(&self, environment: impl Fn(&str) -> Option<String>) -> Result<VendorModel, ConnectError> {
        let name = self.full_name();
        let mut settings = ModelSettings::new().options(ModelOptions {
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            stop: self.stop.clone(),
            strict: self.strict,
            cache: self.cache,
            extra: self.extra.clone(),
            ..ModelOptions::default()
        });
        if let Some(variable) = &self.key_env {
            let key = environment(variable).filter(|key| !key.trim().is_empty());
            let key = key
                .ok_or_else(|| ConnectError::NoVariable { name: name.clone(), variable: variable.clone() })?;
            settings = settings.key(Secret::new(key.trim()));
        }
        if let Some(images) = self.images {
            settings = settings.images(images);
        }
        if let Some(url) = &self.base_url {
            settings = settings.base_url(url);
        }
        if let Some(region) = &self.region {
            settings = settings.region(region);
        }
        if let Some(version) = &self.api_version {
            settings = settings.api_version(version);
        }
        for (header, value) in &self.headers {
            settings = settings.header(header, value);
        }
        if let Some(seconds) = self.timeout {
            let read = Duration::try_from_secs_f64(seconds).map_err(|error| {
                let told = format!("`timeout` must be a positive number of seconds, got {seconds}");
                ConnectError::Http(ModelError::new(ModelErrorKind::Request, told).with_source(error))
            })?;
            settings = settings.limits(HttpLimits { read, ..HttpLimits::default() });
        }
        if let Some(retries) = self.retries {
            settings = settings.retry(RetryPolicy { retries, ..RetryPolicy::default() });
        }
        if let Some(pace) = self.rate_limiter {
            settings = settings.pace(pace);
        }
        if let Some(proxy) = &self.proxy {
            let proxies = match proxy.as_str() {
                "none" => Proxies::none(),
                address => Proxies::all(address).map_err(ConnectError::Proxy)?,
            };
            settings = settings.proxies(proxies);
        }
        if let Some(price) = self.price {
            settings = settings.price(price);
        }
        connect(&name, settings, environment)
    }
}

/// Merges the `config` of llm-workers; the keys beside it take precedence.
fn take_config(model: &mut Map<String, Value>, config: Map<String, Value>) -> Result<(), DataError> {
    for (key, value) in config {
        no_key(&key)?;
        match CONFIG.iter().find(|(theirs, _)| *theirs == key) {
            Some((_, "extra")) => match value {
                Value::Object(fields) => {
                    for (key, value) in fields {
                        no_key(&key)?;
                        pass(model, key, value)?;
                    }
                }
                _ => {
                    let told = DataError::new(format!("`config.{key}` is a map"));
                    return Err(told.inside(key.as_str()).inside("config"));
                }
            },
            Some((_, ours)) => {
                model.entry(*ours).or_insert(value);
            }
            None if key == "organization" || key == "openai_organization" => {
                if let Value::Object(headers) =
                    model.entry("headers").or_insert_with(|| Value::Object(Map::new()))
                {
                    headers.entry("OpenAI-Organization").or_insert(value);
                }
            }
            None if OF_LANGCHAIN.contains(&key.as_str()) => {}
            None => pass(model, key, value)?,
        }
    }
    Ok(())
}

fn no_key(word: &str) -> Result<(), DataError> {
    if !is_key(word) {
        return Ok(());
    }
    let told = format!(
        "`config.{word}` is a key, which does not belong into a file: put it into a variable and name that with `key_env`"
    );
    Err(DataError::new(told).inside(word).inside("config"))
}

/// Puts a field among those that go to the vendor as they are.
fn pass(model: &mut Map<String, Value>, key: String, value: Value) -> Result<(), DataError> {
    match model.entry("extra").or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(extra) => {
            extra.entry(key).or_insert(value);
            Ok(())
        }
        _ => Err(DataError::new("`extra` is a map").inside("extra")),
    }
}

/// The way to something that [`take_config`] took, as it stands in the file.
fn where_written(mut misfit: DataError, beside: &[String], config: &Map<String, Value>) -> DataError {
    let Some(PathSegment::Key(ours)) = misfit.path.first() else { return misfit };
    let taken = CONFIG.iter().find(|(theirs, name)| name == ours && config.contains_key(*theirs));
    if let Some((theirs, _)) = taken.filter(|_| !beside.contains(ours)) {
        misfit.path.splice(..1, [PathSegment::from("config"), PathSegment::from(*theirs)]);
    }
    misfit
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwright_core::{Model as _, Usage};

    use super::*;

    #[test]
    fn what_llm_workers_ships_is_read_and_reaches_the_vendor() {
        let list = json!([{"name": "thinking", "provider": "anthropic", "model": "claude-opus-4-5",
            "config": {"temperature": 1, "max_tokens": 32768, "model_kwargs": {"top_k": 5},
                "thinking": {"type": "enabled", "budget_tokens": 16000}, "output_version": "responses/v1"},
            "pricing": {"currency": "USD", "input_tokens_per_million": 5.0, "output_tokens_per_million": 25.0}}]);
        let model = ModelConfig::read(&list).unwrap().remove("thinking").unwrap();
        let extra = json!({"top_k": 5, "thinking": {"type": "enabled", "budget_tokens": 16000}});
        assert_eq!(Value::Object(model.extra), extra);
        assert_eq!((model.max_tokens, model.price.map(|price| price.output)), (Some(32768), Some(25.0)));
        let other = json!({"a": {"model": "a/b", "pricing": {"currency": "EUR", "input": 1, "output": 1}}});
        let told = ModelConfig::read(&other).unwrap_err().to_string();
        assert!(
            told.contains("`pricing.currency` is \"EUR\", and costs are counted in US dollars"),
            "{told}"
        );
    }

    #[test]
    fn a_key_in_config_is_refused_and_words_of_the_client_are_not_sent() {
        for word in ["api_key", "openai_api_key", "azure_ad_token", "aws_secret_access_key"] {
            for config in [json!({word: "sk-1"}), json!({"model_kwargs": {word: "sk-1"}})] {
                let list = json!([{"name": "a", "provider": "openai", "model": "m", "config": config}]);
                let told = ModelConfig::read(&list).unwrap_err().to_string();
                assert!(
                    told.contains("`key_env`") && told.contains(word) && !told.contains("sk-1"),
                    "{told}"
                );
            }
        }
        let config = json!({"organization": "org-1", "callbacks": [], "openai_api_base": "http://localhost:1",
            "max_tokens": 5, "top_logprobs": 2});
        let list = json!([{"name": "a", "provider": "openai", "model": "m", "config": config}]);
        let model = ModelConfig::read(&list).unwrap().remove("a").unwrap();
        assert_eq!(Value::Object(model.extra), json!({"top_logprobs": 2}));
        assert_eq!(model.headers.get("OpenAI-Organization").map(String::as_str), Some("org-1"));
        assert_eq!(model.base_url.as_deref(), Some("http://localhost:1"));
    }

    #[test]
    fn a_time_that_a_program_gets_wrong_is_an_error() {
        for timeout in [-1.0, f64::NAN, 1e300] {
            let config = ModelConfig {
                model: "ollama/m".to_owned(),
                timeout: Some(timeout),
                ..ModelConfig::default()
            };
            let error = config.connect(|_| None).err().unwrap();
            let told = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(told, format!("`timeout` must be a positive number of seconds, got {timeout}"));
        }
    }

    #[test]
    fn models_come_as_a_map_or_a_list_and_mistakes_are_named() {
        let list = json!([
            {"name": "default", "provider": "anthropic", "model": "claude-sonnet-4-5", "key_env": "MY_KEY",
             "pricing": {"input_tokens_per_million": 1.0, "output_tokens_per_million": 2.0}},
            {"name": "local", "model": "llama.cpp/any", "config": {"temperature": 0, "max_retries": 1},
             "rate_limiter": {"requests_per_second": 2, "check_every_n_seconds": 0.1, "max_bucket_size": 10}},
        ]);
        let models = ModelConfig::read(&list).unwrap();
        assert_eq!(models["default"].full_name(), "anthropic/claude-sonnet-4-5");
        assert_eq!((models["local"].temperature, models["local"].retries), (Some(0.0), Some(1)));
        let usage = Usage { input_tokens: 1_000_000, output_tokens: 1_000_000, ..Usage::default() };
        let model = models["default"].connect(|name| (name == "MY_KEY").then(|| "k".to_owned())).unwrap();
        assert_eq!(model.cost(&usage), Some(3.0));
        assert_eq!(models["local"].connect(|_| None).unwrap().cost(&usage), Some(0.0));
        let error = models["default"].connect(|_| None).unwrap_err();
        assert_eq!(error.to_string(), "`anthropic/claude-sonnet-4-5` needs a key, and MY_KEY is not set");

        for (section, problem) in [
            (json!("x"), "`models` must be a map of names to models, or a list"),
            (json!([{"model": "a/b"}]), "each model of a list needs a `name`"),
            (
                json!([{"name": "a", "model": "a/b"}, {"name": "a", "model": "a/b"}]),
                "there are two models `a`",
            ),
            (
                json!({"a": {"model": "a/b", "timeout": -1}}),
                "the model `a`: `timeout` must be a number of seconds, at most a day",
            ),
            (
                json!({"a": {"model": "a/b", "rate_limiter": {"requests_per_second": 0}}}),
                "the model `a`: `rate_limiter`: `requests_per_second` must be a number above 0",
            ),
            (
                json!({"a": {"model": "a/b", "price": {"input": -1, "output": 1}}}),
                "the model `a`: a price cannot be negative",
            ),
        ] {
            assert_eq!(ModelConfig::read(&section).unwrap_err().to_string(), problem);
        }
        let error = ModelConfig::read(&json!({"a": {"model": "a/b", "modle": 1}})).unwrap_err().to_string();
        assert_eq!(error, "the model `a`: unknown key `modle`; did you mean `model`?");
    }

    #[test]
    fn a_mistake_is_told_with_the_way_to_it() {
        let fine = json!({"name": "a", "model": "v/m"});
        for (second, path, told) in [
            (
                json!({"modle": "v/m"}),
                vec!["modle"],
                "the model `b`: unknown key `modle`; did you mean `model`?",
            ),
            (
                json!({"model": "v/m", "timeout": "1e300"}),
                vec!["timeout"],
                "the model `b`: `timeout`: invalid type: string \"1e300\", expected a number",
            ),
            (
                json!({"model": "v/m", "config": {"request_timeout": "long"}}),
                vec!["config", "request_timeout"],
                "the model `b`: `timeout`: invalid type: string \"long\", expected a number",
            ),
            (
                json!({"model": "v/m", "price": {"input": 1, "output": 1, "currency": "EUR"}}),
                vec!["price", "currency"],
                "the model `b`: `price.currency` is \"EUR\", and costs are counted in US dollars: give the prices in \
                 `USD`",
            ),
        ] {
            let inner = path.into_iter().map(PathSegment::from);
            let by_name = ModelConfig::read(&json!({"a": "v/m", "b": second})).unwrap_err();
            let way = [PathSegment::from("b")].into_iter().chain(inner.clone());
            assert_eq!(by_name.misfit().path, way.collect::<Vec<_>>());
            assert_eq!(by_name.to_string(), told);
            let mut item = second.clone();
            item["name"] = "b".into();
            let by_number = ModelConfig::read(&json!([fine, item])).unwrap_err();
            let way = [PathSegment::from(1)].into_iter().chain(inner);
            assert_eq!(by_number.misfit().path, way.collect::<Vec<_>>());
        }
    }
}
