//! A vendor's model: encode, send, decode.

use std::time::Duration;

use reqwest::Url;
use toolwright_core::{BoxFuture, DeltaSink, Model, ModelError, ModelReply, ModelRequest};

use crate::error;
use crate::http::Http;
use crate::vendor::Vendor;
use crate::wire::{Delivery, Target};

/// How long a connection may take to end after the reply is complete.
const LINGER: Duration = Duration::from_millis(100);

/// A model behind a vendor's API, made by [`connect`](crate::connect).
#[derive(Debug)]
pub struct VendorModel {
    pub(crate) name: String,
    pub(crate) vendor: &'static Vendor,
    pub(crate) model: String,
    pub(crate) base: Url,
    pub(crate) http: Http,
}

impl VendorModel {
    /// The vendor.
    pub fn vendor(&self) -> &'static Vendor {
        self.vendor
    }

    async fn ask(
        &self,
        request: ModelRequest<'_>,
        delivery: Delivery,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        let limit = self.http.limits.total;
        let answer = tokio::time::timeout(limit, self.ask_once(request, delivery, sink)).await;
        let answer = answer
            .unwrap_or_else(|_| Err(error::unavailable(format!("the answer took more than {limit:?}"))));
        answer.map_err(|failed| error::scrub(failed, &self.http.secrets))
    }

    async fn ask_once(
        &self,
        request: ModelRequest<'_>,
        delivery: Delivery,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        let wire = self.vendor.wire;
        let target = Target { vendor: self.vendor, model: &self.model };
        let body = wire.encode(target, &request, delivery)?;
        let mut answer = self.http.post(&self.url(delivery)?, body.to_string().as_bytes()).await?;
        let mut decoder = wire.decoder(target, &request);
        // A server that does not stream answers with a document even when asked for events.
        if delivery == Delivery::Whole || !answer.is_stream() {
            decoder.body(&answer.body().await?, sink)?;
            return decoder.finish();
        }
        let mut reader = wire.reader(self.http.limits.event);
        while let Some(chunk) = answer.chunk().await? {
            for event in reader.push(chunk.as_ref())? {
                decoder.event(&event, sink)?;
            }
            if decoder.is_over() {
                // A connection that ends now can be used again; one that stays open is not waited for.
                let _ = tokio::time::timeout(LINGER, answer.chunk()).await;
                break;
            }
        }
        decoder.finish()
    }

    fn url(&self, delivery: Delivery) -> Result<Url, ModelError> {
        let base = self.base.as_str().trim_end_matches('/');
        let url = format!("{base}{}", self.vendor.wire.path(&self.model, delivery));
        Url::parse(&url).map_err(|cause| error::request("the address is not valid").with_source(cause))
    }
}

impl Model for VendorModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move { self.ask(request, Delivery::Whole, &mut |_| {}).await })
    }

    fn generate_streaming<'a>(
        &'a self,
        request: ModelRequest<'a>,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(self.ask(request, Delivery::Stream, sink))
    }
}
