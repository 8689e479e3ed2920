//! OAuth for HTTP servers: who may act for whom, found out from the server's own refusals.
//!
//! A server that answers 401 or 403 says where its authorization server is described (RFC 9728, RFC 8414).
//! The client registers there, or uses what it was given, sends the person to a page, and trades the code
//! that comes back for a token (OAuth 2.1 with PKCE). Tokens are kept per server, credentials per
//! authorization server: neither is ever sent to another one.

mod browser;
mod challenge;
mod discovery;
mod grant;
mod jwt;
mod store;

use std::sync::Arc;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::watch;
use toolwright_core::Secret;
use toolwright_net::reqwest::{self, Url};
use toolwright_net::{Dial, Proxies, Reach};
use toolwright_util::lock;

pub use self::browser::{Browser, LoopbackBrowser};
pub(crate) use self::challenge::Challenge;
pub(crate) use self::discovery::is_local;
pub use self::store::TokenStore;

use self::discovery::{Far, Metadata, ProtectedResource};
use self::grant::NoToken;
use self::store::{Registration, StoredGrant, Tokens};
use crate::error::{McpError, McpErrorKind};
/// How a client comes by its tokens.
#[derive(Clone)]
#[non_exhaustive]
pub struct OAuthOptions {
    /// What the client calls itself when it registers.
    pub client_name: String,
    /// An https address that describes the client; authorization servers that know such addresses take it as
    /// its name.
    pub client_metadata_url: Option<String>,
    /// A name, and maybe a secret, that the authorization server gave out beforehand.
    pub registered: Option<Credentials>,
    /// Acts for itself, without a person: the client credentials grant.
    pub machine: Option<Machine>,
    /// Sends the person to a page; without one only what needs no person works.
    pub browser: Option<Arc<dyn Browser>>,
    /// Where tokens are kept.
    pub store: TokenStore,
}

impl Default for OAuthOptions {
    fn default() -> Self {
        OAuthOptions {
            client_name: "Toolwright".to_owned(),
            client_metadata_url: None,
            registered: None,
            machine: None,
            browser: None,
            store: TokenStore::in_memory(),
        }
    }
}

impl std::fmt::Debug for OAuthOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuthOptions").field("client_name", &self.client_name).finish_non_exhaustive()
    }
}

/// What an authorization server knows a client by.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The name.
    pub client_id: String,
    /// The secret, when there is one.
    pub client_secret: Option<Secret>,
    /// The authorization server they belong to; they are shown to no other. Without it, to the first that is
    /// met.
    pub issuer: Option<String>,
}

/// A client that acts for itself.
#[derive(Debug, Clone)]
pub enum Machine {
    /// Proves itself with a secret.
    Secret {
        /// The name.
        client_id: String,
        /// The secret.
        client_secret: Secret,
    },
    /// Proves itself with a signature (ES256).
    Key {
        /// The name.
        client_id: String,
        /// The private key, PKCS#8 in PEM.
        private_key: Secret,
    },
}

/// The client's side of OAuth, for one server.
pub(crate) struct OAuth {
    http: reqwest::Client,
    proxies: Proxies,
    server: Url,
    options: OAuthOptions,
    state: Mutex<StoredGrant>,
    /// The access token that the store held when it was last looked at; another one there is newer than ours.
    stored: Mutex<Option<Secret>>,
    /// Why the last token could not be stored, until it is reported.
    trouble: Mutex<Option<String>>,
    /// Held while a token is fetched, so that this happens once.
    fetching: tokio::sync::Mutex<()>,
    /// Held while a token is renewed, which goes on when nobody waits for it any more.
    renewing: tokio::sync::Mutex<()>,
    /// True while a person is asked.
    asking: watch::Sender<bool>,
    /// What dials authorization servers, whose addresses the server names.
    far: tokio::sync::OnceCell<Far>,
}

impl OAuth {
    pub(crate) fn new(
        http: reqwest::Client,
        proxies: Proxies,
        server: Url,
        options: OAuthOptions,
    ) -> Result<Self, McpError> {
        let kept = options.store.load(server.as_str()).map_err(|why| failed(&why))?.unwrap_or_default();
        let stored = Mutex::new(kept.tokens.as_ref().map(|tokens| tokens.access.clone()));
        let (state, trouble) = (Mutex::new(kept), Mutex::default());
        let (fetching, renewing) = (tokio::sync::Mutex::default(), tokio::sync::Mutex::default());
        let (asking, far) = (watch::Sender::new(false), tokio::sync::OnceCell::new());
        Ok(OAuth { http, proxies, server, options, state, stored, trouble, fetching, renewing, asking, far })
    }

    /// Tells when a person is asked, which takes as long as people take.
    pub(crate) fn asking(&self) -> watch::Receiver<bool> {
        self.asking.subscribe()
    }

    /// What dials authorization servers, and where to: a server on the public internet cannot send us into
    /// the network behind this machine.
    async fn far(&self) -> Result<&Far, McpError> {
        let make = async || {
            let reach = discovery::reach_of(&self.server).await;
            // A server on this machine is reached without proxies; who guards it may be far away.
            let same_way = self.proxies.leading_to(&self.server) == self.proxies;
            let proxies = match reach {
                Reach::Anywhere => self.proxies.clone().not_for_this_machine(),
                Reach::Public | Reach::Hosts(_) => self.proxies.clone(),
            };
            if reach == Reach::Anywhere && same_way {
                return Ok(Far { http: self.http.clone(), reach, proxies });
            }
            let (connect, read) = (grant::TIME, grant::TIME);
            let dial = Dial { https: true, connect, read, proxies: proxies.clone(), reach: reach.clone() };
            let http = match dial.client() {
                // Proxies that cannot be used trouble nobody on this machine.
                Err(_) if reach == Reach::Anywhere => self.http.clone(),
                dialled => dialled.map_err(|error| failed(&error.to_string()))?,
            };
            Ok(Far { http, reach, proxies })
        };
        self.far.get_or_try_init(make).await
    }

    fn state(&self) -> MutexGuard<'_, StoredGrant> {
        lock(&self.state)
    }

    /// The token to present, if there is one; one that is about to end is renewed first.
    pub(crate) async fn token(self: &Arc<Self>) -> Option<Secret> {
        let tokens = self.state().tokens.clone()?;
        if !tokens.is_stale() {
            return Some(tokens.access);
        }
        let _one = self.fetching.lock().await;
        let tokens = self.state().tokens.clone()?;
        if tokens.is_stale() {
            let _ = self.renew(&tokens).await;
        }
        self.state().tokens.as_ref().map(|tokens| tokens.access.clone())
    }

    /// Answers a refusal: gets a token that should do. `presented` is the one that was refused.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        challenge: &Challenge,
        presented: Option<&Secret>,
    ) -> Result<(), McpError> {
        let _one = self.fetching.lock().await;
        let tokens = self.state().tokens.clone();
        // Somebody else may have got a new one in the meantime, here or in another program.
        if let Some(tokens) = &tokens
            && presented != Some(&tokens.access)
        {
            return Ok(());
        }
        if self.take_over() {
            return Ok(());
        }
        if challenge.wants_more_scopes {
            let asked = self.state().asked_scopes.clone();
            if challenge.scopes.iter().all(|scope| asked.contains(scope)) {
                let scopes = challenge.scopes.join(" ");
                return Err(failed(&format!(
                    "the server wants the scopes `{scopes}`, which were asked for already"
                )));
            }
        } else if let Some(tokens) = tokens.as_ref().filter(|tokens| tokens.refresh.is_some()) {
            match self.renew(tokens).await {
                Err(error) if error.kind() == McpErrorKind::Unauthorized => {}
                other => return other,
            }
        } else {
            self.state().tokens = None;
        }
        // A token that is only worth too little, or may be renewed another time, stays until there is a
        // better one.
        self.authorize(challenge).await
    }

    /// Gets another token in place of one that was refused, where that needs no person.
    pub(crate) async fn refresh(self: &Arc<Self>, presented: Option<&Secret>) {
        let _one = self.fetching.lock().await;
        let Some(tokens) = self.state().tokens.clone() else { return };
        if presented == Some(&tokens.access) && !self.take_over() && tokens.refresh.is_some() {
            let _ = self.renew(&tokens).await;
        }
    }

    async fn authorize(&self, challenge: &Challenge) -> Result<(), McpError> {
        let resource = discovery::resource(&self.http, &self.server, challenge).await?;
        let far = self.far().await?;
        let metadata = discovery::metadata(far, &self.server, &resource).await?;
        let scopes = self.scopes(challenge, &resource, &metadata);
        let tokens = match &self.options.machine {
            Some(machine) => grant::as_machine(&far.http, &metadata, machine, &resource, &scopes).await?,
            None => {
                let Some(browser) = self.options.browser.clone() else {
                    return Err(failed(
                        "the server wants a person to allow this, and there is nobody to ask",
                    ));
                };
                let _asking = ConsentGuard::new(&self.asking);
                let (client, tokens) = self.as_person(&metadata, &*browser, &resource, &scopes).await?;
                let mut state = self.state();
                state.registration = Some(client);
                state.suspect = false;
                tokens
            }
        };
        let mut state = self.state();
        state.issuer = Some(metadata.issuer.clone());
        state.resource.clone_from(&resource.name);
        state.token_endpoint = Some(metadata.token_endpoint.to_string());
        state.asked_scopes = scopes;
        state.tokens = Some(tokens);
        drop(state);
        self.keep();
        Ok(())
    }

    /// Stores the tokens. A token that cannot be stored is still used: the one before it may no longer be
    /// valid.
    fn keep(&self) {
        let kept = self.state().clone();
        match self.options.store.save(self.server.as_str(), &kept) {
            Ok(()) => *lock(&self.stored) = kept.tokens.map(|tokens| tokens.access),
            Err(why) => *lock(&self.trouble) = Some(format!("the new token is not kept: {why}")),
        }
    }

    /// Why the last token could not be kept; told once.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        lock(&self.trouble).take()
    }

    /// Takes over the token that another program has put into the store since it was last looked at, if there
    /// is one.
    fn take_over(&self) -> bool {
        let Ok(Some(kept)) = self.options.store.load(self.server.as_str()) else { return false };
        let Some(access) = kept.tokens.as_ref().map(|tokens| tokens.access.clone()) else { return false };
        let before = lock(&self.stored).replace(access.clone());
        let mut state = self.state();
        if before.as_ref() == Some(&access) || state.tokens.as_ref().is_some_and(|ours| ours.access == access)
        {
            return false;
        }
        *state = kept;
        true
    }

    /// What to ask for: what the server named, else what it lists, else nothing; what was asked for before
    /// stays.
    fn scopes(
        &self,
        challenge: &Challenge,
        resource: &ProtectedResource,
        metadata: &Metadata,
    ) -> Vec<String> {
        let mut scopes =
            if challenge.scopes.is_empty() { resource.scopes.clone() } else { challenge.scopes.clone() };
        if challenge.wants_more_scopes {
            let before = self.state().asked_scopes.clone();
            scopes = before.into_iter().chain(scopes).collect();
        }
        // Without a person there is nothing to renew later.
        let renewable = metadata.scopes.iter().any(|scope| scope == "offline_access");
        if renewable && self.options.machine.is_none() {
            scopes.push("offline_access".to_owned());
        }
        let mut seen = std::collections::HashSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        scopes
    }

    /// Gets a token for a person, and says under which name: the one that was given, or else one the client
    /// registered before, or else a new one.
    async fn as_person(
        &self,
        metadata: &Metadata,
        browser: &dyn Browser,
        resource: &ProtectedResource,
        scopes: &[String],
    ) -> Result<(Registration, Tokens), McpError> {
        let Far { http, .. } = self.far().await?;
        let ask = async |client: Registration| {
            let tokens = grant::as_person(http, metadata, &client, browser, resource, scopes).await?;
            Ok::<_, NoToken>((client, tokens))
        };
        let redirect_uri = browser.redirect_uri();
        if let Some(given) = self.given(metadata, &redirect_uri, scopes) {
            return Ok(ask(given).await?);
        }
        if let Some(known) = self.known(metadata, &redirect_uri, scopes)? {
            match ask(known).await {
                Err(none) if none.client_unknown => {}
                other => return Ok(other?),
            }
        }
        let name = &self.options.client_name;
        Ok(ask(grant::register(http, metadata, name, redirect_uri, scopes).await?).await?)
    }

    /// The client's name at this authorization server, when it need not register.
    fn given(&self, metadata: &Metadata, redirect_uri: &str, scopes: &[String]) -> Option<Registration> {
        let options = &self.options;
        let registered = options.registered.as_ref();
        let registered = registered
            .filter(|given| given.issuer.as_ref().is_none_or(|issuer| *issuer == metadata.issuer))
            .map(|given| (given.client_id.clone(), given.client_secret.clone(), None));
        let address = options.client_metadata_url.as_ref().filter(|_| metadata.knows_client_addresses);
        let address = address.map(|url| (url.clone(), None, Some("none".to_owned())));
        let (client_id, client_secret, method) = registered.or(address)?;
        Some(Registration {
            issuer: metadata.issuer.clone(),
            client_id,
            client_secret,
            method,
            redirect_uri: redirect_uri.to_owned(),
            scopes: scopes.to_vec(),
        })
    }

    /// The name the client registered before, if it still fits. A server that has forgotten it shows a page
    /// that sends nobody back: so it is suspect until it has led to a token, and the next sign-in does
    /// without it. Tokens are still renewed under it: declining a sign-in does not revoke
    /// existing ones.
    fn known(
        &self,
        metadata: &Metadata,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<Option<Registration>, McpError> {
        let (known, suspect) = {
            let mut state = self.state();
            let fits = |known: &&Registration| {
                known.issuer == metadata.issuer
                    && known.redirect_uri == redirect_uri
                    && scopes.iter().all(|scope| known.scopes.contains(scope))
            };
            let Some(known) = state.registration.as_ref().filter(fits).cloned() else { return Ok(None) };
            state.suspect = !state.suspect;
            (known, state.suspect)
        };
        let marked = self.options.store.change(self.server.as_str(), |kept| kept.suspect = suspect);
        marked.map_err(|why| failed(&why))?;
        Ok(suspect.then_some(known))
    }

    /// Trades a refresh token for a new access token. Of programs that share the store one does so at a time,
    /// and the others take its token over: many authorization servers take each refresh token once, and none
    /// of its kind after a second time. So it goes on, and what comes is kept, when nobody waits for it any
    /// more.
    async fn renew(self: &Arc<Self>, tokens: &Tokens) -> Result<(), McpError> {
        let (oauth, tokens) = (self.clone(), tokens.clone());
        let renewed = tokio::spawn(async move {
            let _one = oauth.renewing.lock().await;
            let now = oauth.state().tokens.as_ref().map(|now| now.access.clone());
            match now {
                Some(now) if now == tokens.access => oauth.renew_in_turn(&tokens).await,
                // It was renewed for a request that was given up.
                Some(_) => Ok(()),
                None => Err(failed("the token cannot be renewed")),
            }
        });
        renewed.await.unwrap_or_else(|_| Err(failed("the token cannot be renewed")))
    }

    async fn renew_in_turn(&self, tokens: &Tokens) -> Result<(), McpError> {
        let _turn = self.options.store.renewing(self.server.as_str()).await;
        if self.take_over() {
            return Ok(());
        }
        let kept = self.state().clone();
        let outcome = grant::renewed(self.far().await?, &kept, tokens).await;
        // Where nobody waits for this one any more, a person may have been asked for another meanwhile.
        if self.state().tokens.as_ref().is_some_and(|now| now.access != tokens.access) {
            return Ok(());
        }
        match outcome {
            Ok(renewed) => self.state().tokens = Some(renewed),
            // A program that waits for no turn may have been first.
            Err(none) if none.grant_gone && self.take_over() => return Ok(()),
            Err(NoToken { error, client_unknown, grant_gone }) => {
                let mut state = self.state();
                if grant_gone {
                    state.tokens = None;
                }
                if client_unknown {
                    state.registration = None;
                }
                return Err(error);
            }
        }
        self.keep();
        Ok(())
    }
}

/// Says that a person is asked, until it is dropped.
struct ConsentGuard<'a>(&'a watch::Sender<bool>);

impl<'a> ConsentGuard<'a> {
    fn new(asking: &'a watch::Sender<bool>) -> Self {
        asking.send_replace(true);
        ConsentGuard(asking)
    }
}

impl Drop for ConsentGuard<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

fn failed(why: &str) -> McpError {
    McpError::new(McpErrorKind::Unauthorized, format!("no authorization: {why}"))
}
