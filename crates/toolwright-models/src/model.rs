//! A vendor's model: encode, send, decode.

use std::borrow::Cow;
use std::time::Duration;

use reqwest::Url;
use serde_json::Value;
use toolwright_core::{
    DeltaSink, Message, Model, ModelDelta, ModelError, ModelOptions, ModelReply, ModelRequest, Usage,
};

use crate::error;
use crate::http::Http;
use crate::price::Price;
use crate::retry::AttemptFailure;
use crate::tokens::{self, Tokens};
use crate::vendor::Vendor;
use crate::wire::{Delivery, ModelTarget, content};

/// How long a connection may take to end after the reply is complete.
const LINGER: Duration = Duration::from_millis(100);

/// How long to wait for the usage after a complete reply. Some servers mark every event as the last one; a
/// pause of up to this length loses nothing.
const TRAILING: Duration = Duration::from_secs(15);

/// A model behind a vendor's API, made by [`connect`](crate::connect).
#[derive(Debug)]
pub struct VendorModel {
    pub(crate) name: String,
    pub(crate) vendor: &'static Vendor,
    pub(crate) model: String,
    pub(crate) base: Url,
    pub(crate) http: Http,
    /// How it answers when a request does not say.
    pub(crate) options: ModelOptions,
    pub(crate) price: Option<Price>,
    /// Pictures are described to it.
    pub(crate) blind: bool,
}

impl VendorModel {
    /// The vendor.
    pub fn vendor(&self) -> &'static Vendor {
        self.vendor
    }

    /// What its tokens cost, when that is known.
    pub fn price(&self) -> Option<&Price> {
        self.price.as_ref()
    }

    /// How many tokens a request would read. The vendor counts where it offers that, at no charge; else it is
    /// estimated.
    pub async fn count_tokens(&self, request: ModelRequest<'_>) -> Result<Tokens, ModelError> {
        let target = ModelTarget { vendor: self.vendor, model: &self.model };
        let options = request.options.or(&self.options);
        let messages = self.shown(request.messages);
        let request = ModelRequest { messages: &messages, options: &options, ..request };
        let Some((path, body)) = self.vendor.wire.count(target, &request)? else {
            return Ok(Tokens::Estimated(tokens::estimate(self.vendor, &request)));
        };
        let reply = self.post(&path, &body).await?;
        let names = ["input_tokens", "inputTokens", "totalTokens"];
        let number = names.iter().find_map(|name| reply.get(*name)?.as_u64());
        number.map(Tokens::Counted).ok_or_else(|| error::reply("the count has no number of tokens"))
    }

    /// Sends a body of the caller's own to a path of the vendor's API, in the same way as all requests: with
    /// the key or the signature, the tries and the limits of this model.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, ModelError> {
        let posting = async {
            let mut answer = self.http.post(&self.url(path)?, body.to_string().as_bytes()).await?;
            let body = answer.body().await?;
            serde_json::from_slice(&body)
                .map_err(|cause| error::reply("the reply is not JSON").with_source(cause))
        };
        let limit = self.http.route.limits.total;
        let reply = tokio::time::timeout(limit, posting).await;
        let reply =
            reply.unwrap_or_else(|_| Err(error::unavailable(format!("the answer took more than {limit:?}"))));
        reply.map_err(|failed| error::scrub(failed, &self.http.secrets()))
    }

    async fn ask(
        &self,
        request: ModelRequest<'_>,
        delivery: Delivery,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        let limit = self.http.route.limits.total;
        let answer = tokio::time::timeout(limit, self.ask_once(request, delivery, sink)).await;
        let answer = answer
            .unwrap_or_else(|_| Err(error::unavailable(format!("the answer took more than {limit:?}"))));
        answer.map_err(|failed| error::scrub(failed, &self.http.secrets()))
    }

    /// Repeats the request, by the retry policy, until a reply is complete. A stream that breaks off after
    /// the sink got a delta is an error.
    async fn ask_once(
        &self,
        request: ModelRequest<'_>,
        delivery: Delivery,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        let target = ModelTarget { vendor: self.vendor, model: &self.model };
        let options = request.options.or(&self.options);
        let messages = self.shown(request.messages);
        let request = ModelRequest { messages: &messages, options: &options, ..request };
        let body = self.vendor.wire.encode(target, &request, delivery)?.to_string();
        let mut retries = self.http.route.retry.start();
        loop {
            let mut delivered = false;
            let mut watched = |delta: ModelDelta<'_>| {
                delivered = true;
                sink(delta);
            };
            match self.read_answer(target, &request, &body, delivery, &mut watched).await {
                Ok(reply) => return Ok(reply),
                // A retry would repeat the deltas that the sink already has.
                Err(failure) if delivered => return Err(failure.into_error()),
                Err(failure) => retries.wait(failure).await?,
            }
        }
    }

    /// One try: sends the request and reads the whole reply.
    async fn read_answer(
        &self,
        target: ModelTarget<'_>,
        request: &ModelRequest<'_>,
        body: &str,
        delivery: Delivery,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, AttemptFailure> {
        let wire = self.vendor.wire;
        let url = self.url(&wire.path(&self.model, delivery)).map_err(AttemptFailure::Final)?;
        let mut answer = self.http.attempt(&url, body.as_bytes()).await?;
        let mut decoder = wire.decoder(target, request);
        // Some servers answer with a document when asked for events, and others the other way round.
        if !answer.is_stream().await? {
            decoder.body(&answer.body().await?, sink)?;
            return Ok(decoder.finish()?);
        }
        let mut reader = wire.reader(self.http.route.limits.event);
        loop {
            let next = match decoder.is_complete() {
                false => answer.chunk().await?,
                // Nothing of it is lost when the connection ends badly, or not at all.
                true => {
                    tokio::time::timeout(TRAILING, answer.chunk()).await.ok().and_then(Result::ok).flatten()
                }
            };
            let Some(chunk) = next else { break };
            for event in reader.push(&chunk)? {
                decoder.event(&event, sink)?;
            }
            if decoder.is_over() {
                // A connection that ends now can be used again; one that stays open is not waited for.
                let _ = tokio::time::timeout(LINGER, answer.chunk()).await;
                break;
            }
        }
        let over = decoder.is_over();
        let failed =
            |error| if over { AttemptFailure::Final(error) } else { AttemptFailure::Retryable(error, None) };
        decoder.finish().map_err(failed)
    }

    /// The messages as the model may see them.
    fn shown<'a>(&self, messages: &'a [Message]) -> Cow<'a, [Message]> {
        let most = &self.vendor.pictures(&self.model);
        match self.blind {
            true => content::within(&content::without_images(messages), most).into_owned().into(),
            false => content::within(messages, most),
        }
    }

    fn url(&self, path: &str) -> Result<Url, ModelError> {
        let base = self.base.as_str().trim_end_matches('/');
        let url = format!("{base}{path}");
        Url::parse(&url).map_err(|cause| error::request("the address is not valid").with_source(cause))
    }
}

impl Model for VendorModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.ask(request, Delivery::Whole, &mut |_| {}).await
    }

    async fn generate_streaming(
        &self,
        request: ModelRequest<'_>,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        self.ask(request, Delivery::Stream, sink).await
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        self.price.map(|price| price.cost(usage))
    }
}
