//! Tokens end: a client that has a refresh token gets a new one and makes its request again, without asking a
//! person.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::{BoxFuture, ErrorKind, Secret};
use toolwright_mcp::{Browser, Client, HttpTarget, McpErrorKind, OAuthOptions, TokenStore};

use crate::http_client::{Scripted, answer, greeting, options, result, scripted};
use crate::support::{Log, PATIENCE};

/// A person who allows everything, and is counted.
#[derive(Default)]
pub(crate) struct Person(pub(crate) AtomicUsize);

impl Browser for Person {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:5/callback".to_owned()
    }

    fn visit<'a>(&'a self, page: &'a str) -> BoxFuture<'a, Result<String, String>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let state = page.split(['?', '&']).find_map(|pair| pair.strip_prefix("state=")).unwrap_or_default();
        assert!(page.contains("code_challenge_method=S256"), "{page}");
        let back = format!("{}?code=c&state={state}", self.redirect_uri());
        Box::pin(async move { Ok(back) })
    }
}

/// What the authorization server and the MCP server, which are one here, know.
#[derive(Default)]
struct World {
    /// The number of the access token that is good now.
    good: AtomicUsize,
    /// The number of the last token that was given out.
    given: AtomicUsize,
    renewals: AtomicUsize,
    /// How many refresh tokens were refused.
    refused: AtomicUsize,
    /// Is told when a token is asked for.
    asked: tokio::sync::Notify,
    /// Whether tokens are renewed.
    renews: AtomicBool,
    /// Whether the greeting needs no token.
    greets_anybody: AtomicBool,
    /// Whether every token is refused.
    refuses: AtomicBool,
    /// How many clients registered.
    registered: AtomicUsize,
    /// How many of them, the first ones, are not known any more.
    forgotten: AtomicUsize,
    /// How requests for tokens are answered: 1 with an answer that breaks off, 2 with a page, 3 and 4
    /// with a refusal in other words; as they should be otherwise.
    broken: AtomicUsize,
}

impl World {
    fn knows(&self, form: &str) -> bool {
        let client = form.split('&').find_map(|pair| pair.strip_prefix("client_id=us-"));
        client.and_then(|number| number.parse().ok()).is_some_and(|number: usize| {
            number > self.forgotten.load(Ordering::SeqCst) && number <= self.registered.load(Ordering::SeqCst)
        })
    }

    /// The server was started anew, with nothing in its memory.
    fn forget(&self) {
        self.good.store(0, Ordering::SeqCst);
        self.forgotten.store(self.registered.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

async fn world() -> (Arc<World>, Scripted) {
    let world = Arc::new(World::default());
    world.renews.store(true, Ordering::SeqCst);
    let seen = world.clone();
    let server = scripted(move |head, request| {
        let lower = head.to_ascii_lowercase();
        let host = lower.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let own = format!("http://{host}");
        let json = |document: Value| answer("200 OK", "Content-Type: application/json\r\n", &document.to_string());
        match head.split(' ').nth(1).unwrap_or_default() {
            "/mcp" if seen.greets_anybody.load(Ordering::SeqCst) && greeting(&request).is_some() => {
                greeting(&request).unwrap_or_default()
            }
            "/mcp" => {
                let good = format!("authorization: bearer token-{}", seen.good.load(Ordering::SeqCst));
                if seen.refuses.load(Ordering::SeqCst) || !lower.lines().any(|line| line == good) {
                    return answer("401 Unauthorized", "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n", "");
                }
                let said = json!({"content": [{"type": "text", "text": "hello"}], "resultType": "complete"});
                greeting(&request).unwrap_or_else(|| result(&request, said))
            }
            "/.well-known/oauth-protected-resource/mcp" => {
                json(json!({"resource": format!("{own}/mcp"), "authorization_servers": [own]}))
            }
            "/.well-known/oauth-authorization-server" => json(json!({
                "issuer": own, "authorization_endpoint": format!("{own}/authorize"),
                "token_endpoint": format!("{own}/token"), "registration_endpoint": format!("{own}/register"),
                "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"]
            })),
            "/register" => {
                let number = seen.registered.fetch_add(1, Ordering::SeqCst) + 1;
                json(json!({"client_id": format!("us-{number}"), "token_endpoint_auth_method": "none"}))
            }
            "/token" => {
                seen.asked.notify_one();
                match seen.broken.load(Ordering::SeqCst) {
                    1 => return "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"access_token\":\"".to_owned(),
                    2 => return answer("200 OK", "Content-Type: text/html\r\n", "<p>Please log in to the hotel</p>"),
                    _ => {}
                }
                let form = request.as_str().unwrap_or_default();
                match seen.broken.load(Ordering::SeqCst) {
                    3 if form.contains("grant_type=refresh_token") => return answer("400 Bad Request", "", r#"{"message":"expired"}"#),
                    4 if form.contains("grant_type=refresh_token") => return answer("401 Unauthorized", "", "no"),
                    _ => {}
                }
                let last = seen.given.load(Ordering::SeqCst);
                if form.contains("grant_type=refresh_token") {
                    let known = form.contains(&format!("refresh_token=refresh-{last}"));
                    if !known || !seen.renews.load(Ordering::SeqCst) {
                        seen.refused.fetch_add(1, Ordering::SeqCst);
                        return answer("400 Bad Request", "Content-Type: application/json\r\n", r#"{"error":"invalid_grant"}"#);
                    }
                    seen.renewals.fetch_add(1, Ordering::SeqCst);
                }
                if !seen.knows(form) {
                    return answer("401 Unauthorized", "Content-Type: application/json\r\n", r#"{"error":"invalid_client"}"#);
                }
                let number = last + 1;
                seen.given.store(number, Ordering::SeqCst);
                seen.good.store(number, Ordering::SeqCst);
                json(json!({
                    "access_token": format!("token-{number}"), "token_type": "Bearer", "expires_in": 3600,
                    "refresh_token": format!("refresh-{number}")
                }))
            }
            _ => answer("404 Not Found", "", ""),
        }
    })
    .await;
    (world, server)
}

#[tokio::test]
async fn a_token_that_ended_is_renewed_and_the_call_made_again() {
    let (world, server) = world().await;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.json");
    let person = Arc::new(Person::default());
    let target = || {
        let mut oauth = OAuthOptions::default();
        oauth.browser = Some(person.clone());
        oauth.store = TokenStore::in_file(&store);
        HttpTarget::new(&server.url).oauth(oauth)
    };
    let client = Client::dial(&target(), options()).await.unwrap();
    let hello = async |client: &Client| client.call_tool("t", json!({}), PATIENCE, None).await;
    assert_eq!(hello(&client).await.unwrap().to_text(), "hello");
    // The token is worth nothing any more: it is renewed, and the same call is answered.
    world.good.store(0, Ordering::SeqCst);
    assert_eq!(hello(&client).await.unwrap().to_text(), "hello");
    assert_eq!((person.0.load(Ordering::SeqCst), world.renewals.load(Ordering::SeqCst)), (1, 1));
    // Several calls at once find it gone: one renewal is enough for all.
    world.good.store(0, Ordering::SeqCst);
    let (a, b, c) = tokio::join!(hello(&client), hello(&client), hello(&client));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(world.renewals.load(Ordering::SeqCst), 2);
    // Another program of the same user finds the new token in the store, which is for that user alone.
    let again = Client::dial(&target(), options()).await.unwrap();
    assert_eq!(hello(&again).await.unwrap().to_text(), "hello");
    assert_eq!(person.0.load(Ordering::SeqCst), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Once it cannot be renewed, the person is asked again.
    world.renews.store(false, Ordering::SeqCst);
    world.good.store(0, Ordering::SeqCst);
    assert_eq!(hello(&client).await.unwrap().to_text(), "hello");
    assert_eq!(person.0.load(Ordering::SeqCst), 2);
}

/// A person whose page shows nothing but an error.
struct Lost;

impl Browser for Lost {
    fn redirect_uri(&self) -> String {
        Person::default().redirect_uri()
    }

    fn visit<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async { Err("nobody came back".to_owned()) })
    }
}

#[tokio::test]
async fn a_client_that_the_server_forgot_registers_again() {
    let (world, server) = world().await;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.json");
    let person = Arc::new(Person::default());
    let target = |browser: Arc<dyn Browser>| {
        let mut oauth = OAuthOptions::default();
        oauth.browser = Some(browser);
        oauth.store = TokenStore::in_file(&store);
        HttpTarget::new(&server.url).oauth(oauth)
    };
    let met = || (person.0.load(Ordering::SeqCst), world.registered.load(Ordering::SeqCst));
    Client::dial(&target(person.clone()), options()).await.unwrap();
    assert_eq!(met(), (1, 1));
    // The token cannot be renewed by a client that is not known: it registers, and the person is asked once.
    world.forget();
    let client = Client::dial(&target(person.clone()), options()).await.unwrap();
    assert_eq!(client.call_tool("t", json!({}), PATIENCE, None).await.unwrap().to_text(), "hello");
    assert_eq!(met(), (2, 2));
    // The same is kept, and used when there is another reason to ask.
    world.renews.store(false, Ordering::SeqCst);
    world.good.store(0, Ordering::SeqCst);
    Client::dial(&target(person.clone()), options()).await.unwrap();
    assert_eq!(met(), (3, 2));
    // The server says so only when the code is traded: it registers, and the person is asked again.
    world.forget();
    Client::dial(&target(person.clone()), options()).await.unwrap();
    assert_eq!(met(), (5, 3));
    // A page that sends nobody back is not shown twice under the same name.
    world.forget();
    let lost = Client::dial(&target(Arc::new(Lost)), options()).await.unwrap_err();
    assert_eq!(lost.kind(), McpErrorKind::Unauthorized, "{lost}");
    Client::dial(&target(person.clone()), options()).await.unwrap();
    assert_eq!(met(), (6, 4));
}

#[tokio::test]
async fn a_person_who_says_no_ends_no_token() {
    let (world, server) = world().await;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.json");
    let target = |browser: Option<Arc<dyn Browser>>| {
        let mut oauth = OAuthOptions::default();
        oauth.browser = browser;
        oauth.store = TokenStore::in_file(&store);
        HttpTarget::new(&server.url).oauth(oauth)
    };
    Client::dial(&target(Some(Arc::new(Person::default()))), options()).await.unwrap();
    // The server refuses for a while, and the person closes the page.
    world.renews.store(false, Ordering::SeqCst);
    world.good.store(0, Ordering::SeqCst);
    Client::dial(&target(Some(Arc::new(Lost))), options()).await.unwrap_err();
    // The token is renewed later under the name that is known, where nobody can be asked.
    world.renews.store(true, Ordering::SeqCst);
    let client = Client::dial(&target(None), options()).await.unwrap();
    assert_eq!(client.call_tool("t", json!({}), PATIENCE, None).await.unwrap().to_text(), "hello");
    assert_eq!((world.renewals.load(Ordering::SeqCst), world.registered.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn a_client_that_is_never_known_does_not_register_for_ever() {
    let (world, server) = world().await;
    world.forgotten.store(usize::MAX, Ordering::SeqCst);
    let person = Arc::new(Person::default());
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(person.clone());
    let error = Client::dial(&HttpTarget::new(&server.url).oauth(oauth), options()).await.unwrap_err();
    assert!(error.to_string().contains("invalid_client"), "{error}");
    assert_eq!((person.0.load(Ordering::SeqCst), world.registered.load(Ordering::SeqCst)), (1, 1));
}

/// A person who reads before allowing.
struct Slow(Duration, Person);

impl Browser for Slow {
    fn redirect_uri(&self) -> String {
        self.1.redirect_uri()
    }

    fn visit<'a>(&'a self, page: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            self.1.visit(page).await
        })
    }
}

#[tokio::test]
async fn a_person_may_take_longer_than_a_server() {
    let (_world, server) = world().await;
    let mut hasty = options();
    hasty.start_timeout = Duration::from_secs(2);
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(Arc::new(Slow(Duration::from_secs(3), Person::default())));
    Client::dial(&HttpTarget::new(&server.url).oauth(oauth), hasty).await.unwrap();
}

#[tokio::test]
async fn a_token_of_ones_own_is_not_replaced() {
    let (_world, server) = world().await;
    let person = Arc::new(Person::default());
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(person.clone());
    let target =
        HttpTarget::new(&server.url).header("Authorization", Secret::new("Bearer stale")).oauth(oauth);
    let error = Client::dial(&target, options()).await.unwrap_err();
    assert_eq!(error.kind(), McpErrorKind::Unauthorized, "{error}");
    assert_eq!(person.0.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_not_asked_for_ever() {
    let (world, server) = world().await;
    let person = Arc::new(Person::default());
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(person.clone());
    let client = Client::dial(&HttpTarget::new(&server.url).oauth(oauth), options()).await.unwrap();
    world.refuses.store(true, Ordering::SeqCst);
    let refused = client.call_tool("t", json!({}), PATIENCE, None).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Permission, "{refused}");
    let asked = person.0.load(Ordering::SeqCst);
    assert!(asked <= 3, "the person was asked {asked} times");
}

#[tokio::test]
async fn programs_that_share_a_store_renew_one_after_the_other() {
    let (world, server) = world().await;
    let folder = tempfile::tempdir().unwrap();
    let person = Arc::new(Person::default());
    let dial = async || {
        let mut oauth = OAuthOptions::default();
        oauth.browser = Some(person.clone());
        oauth.store = TokenStore::in_file(folder.path().join("tokens.json"));
        Client::dial(&HttpTarget::new(&server.url).oauth(oauth), options()).await.unwrap()
    };
    let (one, other) = (dial().await, dial().await);
    let hello = async |client: &Client| {
        client.call_tool("t", json!({}), PATIENCE, None).await.map(|output| output.to_text())
    };
    // One renews the token. The refresh token of the other is worth nothing now; the new token is found in
    // the store.
    world.good.store(0, Ordering::SeqCst);
    assert_eq!(hello(&one).await.unwrap(), "hello");
    assert_eq!(hello(&other).await.unwrap(), "hello");
    let met = || (person.0.load(Ordering::SeqCst), world.renewals.load(Ordering::SeqCst));
    assert_eq!(met(), (1, 1));
    // Both find it gone at the same time.
    world.good.store(0, Ordering::SeqCst);
    let (a, b) = tokio::join!(hello(&one), hello(&other));
    assert_eq!((a.unwrap(), b.unwrap()), ("hello".to_owned(), "hello".to_owned()));
    assert_eq!(met(), (1, 2));
    // Neither has used up the other's.
    assert_eq!(world.refused.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_malformed_answer_keeps_the_token() {
    let (world, server) = world().await;
    let person = Arc::new(Person::default());
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(person.clone());
    let client = Client::dial(&HttpTarget::new(&server.url).oauth(oauth), options()).await.unwrap();
    let hello = async || client.call_tool("t", json!({}), PATIENCE, None).await;
    for broken in [1, 2] {
        world.good.store(0, Ordering::SeqCst);
        world.broken.store(broken, Ordering::SeqCst);
        let error = hello().await.unwrap_err();
        assert!(error.message().contains("the place for tokens"), "{error}");
        world.broken.store(0, Ordering::SeqCst);
        assert_eq!(hello().await.unwrap().to_text(), "hello");
    }
    assert_eq!((person.0.load(Ordering::SeqCst), world.renewals.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn a_refusal_in_other_words_has_the_person_asked() {
    for broken in [3, 4] {
        let (world, server) = world().await;
        let person = Arc::new(Person::default());
        let mut oauth = OAuthOptions::default();
        oauth.browser = Some(person.clone());
        let client = Client::dial(&HttpTarget::new(&server.url).oauth(oauth), options()).await.unwrap();
        world.good.store(0, Ordering::SeqCst);
        world.broken.store(broken, Ordering::SeqCst);
        assert_eq!(client.call_tool("t", json!({}), PATIENCE, None).await.unwrap().to_text(), "hello");
        assert_eq!(person.0.load(Ordering::SeqCst), 2, "{broken}");
    }
}

#[tokio::test]
async fn calls_that_need_a_token_at_the_same_time_have_the_person_asked_once() {
    let (world, server) = world().await;
    world.greets_anybody.store(true, Ordering::SeqCst);
    let person = Arc::new(Person::default());
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(person.clone());
    let client = Client::dial(&HttpTarget::new(&server.url).oauth(oauth), options()).await.unwrap();
    let hello = async || client.call_tool("t", json!({}), PATIENCE, None).await.unwrap().to_text();
    assert_eq!(tokio::join!(hello(), hello()), ("hello".to_owned(), "hello".to_owned()));
    // Nor was the first one's token renewed for the second.
    assert_eq!((person.0.load(Ordering::SeqCst), world.renewals.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn a_token_is_renewed_to_the_end_though_nobody_waits() {
    let (world, server) = world().await;
    let person = Arc::new(Person::default());
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(person.clone());
    let client = Client::dial(&HttpTarget::new(&server.url).oauth(oauth), options()).await.unwrap();
    let hello = async || client.call_tool("t", json!({}), PATIENCE, None).await;
    world.good.store(0, Ordering::SeqCst);
    // The one for the first token.
    world.asked.notified().await;
    tokio::select! {
        biased;
        () = world.asked.notified() => {}
        called = hello() => panic!("it came before anybody could go away: {called:?}"),
    }
    assert_eq!(hello().await.unwrap().to_text(), "hello");
    let met = (person.0.load(Ordering::SeqCst), world.renewals.load(Ordering::SeqCst));
    assert_eq!((met, world.refused.load(Ordering::SeqCst)), ((1, 1), 0));
}

#[tokio::test]
async fn a_token_that_cannot_be_kept_is_used_all_the_same() {
    let (world, server) = world().await;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.json");
    let person = Arc::new(Person::default());
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(person.clone());
    oauth.store = TokenStore::in_file(&store);
    let log = Log::default();
    let mut logged = options();
    logged.on_log = Some(Arc::new(log.sink()));
    let client = Client::dial(&HttpTarget::new(&server.url).oauth(oauth), logged).await.unwrap();
    std::fs::write(&store, "no store of tokens").unwrap();
    for _ in 0..2 {
        world.good.store(0, Ordering::SeqCst);
        assert_eq!(client.call_tool("t", json!({}), PATIENCE, None).await.unwrap().to_text(), "hello");
    }
    assert_eq!((person.0.load(Ordering::SeqCst), world.renewals.load(Ordering::SeqCst)), (1, 2));
    assert!(log.text().contains("the new token is not kept"), "{}", log.text());
}
