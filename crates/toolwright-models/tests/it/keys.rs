//! Amazon's own library as the judge of which keys are used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolwright_core::ModelErrorKind;
use toolwright_core::time::Civil;
use toolwright_models::aws::profile::{Keys, Profile};
use toolwright_models::aws::source::CredentialSource;
use toolwright_models::{ModelSettings, RetryPolicy, connect};
use toolwright_testkit::server::{Reply, Request, Server};

use crate::hostile::ask;
use crate::oracle::judge;

/// Keys under a title, with a name and perhaps a token.
fn keys(title: &str, name: &str) -> String {
    format!("[{title}]\naws_access_key_id = {name}\naws_secret_access_key = secret\n")
}

/// What may be in the environment and in the files.
fn cases() -> Vec<Value> {
    let variables = [
        json!({}),
        json!({"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}),
        json!({"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SECURITY_TOKEN": "old"}),
        json!({"AWS_ACCESS_KEY_ID": "E"}),
        json!({"AWS_SECRET_ACCESS_KEY": "secret"}),
        json!({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}),
        json!({"AWS_PROFILE": "work"}),
        json!({"AWS_DEFAULT_PROFILE": "work"}),
        json!({"AWS_PROFILE": "two words"}),
        json!({"AWS_PROFILE": "nobody"}),
        json!({"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "secret"}),
        json!({"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}),
    ];
    let files = [
        ("", String::new()),
        ("[default]\n", String::new()),
        (&*keys("default", "D"), String::new()),
        (&*(keys("default", "D") + &keys("work", "W") + "aws_session_token = token\n"), String::new()),
        ("", keys("default", "C") + &keys("profile work", "V")),
        ("", keys("profile default", "C") + &keys("profile \"two words\"", "Q")),
        ("", keys("work", "V")),
        (&*keys("profile work", "W"), keys("profile   work", "V")),
        (&*keys("two words", "W"), String::new()),
        ("[default]\naws_access_key_id = D\n", keys("default", "C")),
        ("[default]\naws_secret_access_key = secret\n", keys("default", "C")),
        (
            &*keys("default", "D"),
            "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = default\n".into(),
        ),
        (
            &*keys("work", "W"),
            "[profile work]\nrole_arn = arn:aws:iam::1:role/r\nweb_identity_token_file = /token\n".into(),
        ),
        (
            &*keys("work", "W"),
            "[profile work]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = r\n[sso-session corp]\n\
             sso_start_url = https://x.example\nsso_region = us-east-1\n"
                .into(),
        ),
        (
            &*keys("work", "W"),
            "[profile work]\nsso_session = corp\n[sso-session corp]\nsso_start_url = https://x.example\n"
                .into(),
        ),
        (&*keys("work", "W"), "[profile work]\ncredential_process = PROGRAM\n".into()),
        ("", format!("{}credential_process = PROGRAM\n", keys("profile work", "V"))),
        ("", "[default]\ncredential_process = PROGRAM\n".into()),
        ("  [default]\n  AWS_Access_Key_Id=D\n  aws_secret_access_key=secret\n# remark\n", String::new()),
        (
            "[default]\ns3 =\n  aws_access_key_id = N\naws_access_key_id = D\naws_secret_access_key = a=b\n",
            String::new(),
        ),
    ];
    let mut cases = Vec::new();
    for (number, variables) in variables.iter().enumerate() {
        // The profiles with all files; the rest, which comes before the files or beside them, with some.
        let step = if variables.get("AWS_ACCESS_KEY_ID").is_none() { 1 } else { 5 };
        for (credentials, config) in files.iter().skip(number % step).step_by(step) {
            let program = r#"echo {\"Version\":1,\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"p\"}"#;
            let config = config.replace("PROGRAM", program);
            cases.push(json!({"variables": variables, "credentials": credentials, "config": config}));
        }
    }
    cases
}

/// Which keys we find, in the same words.
fn ours(case: &Value, home: &std::path::Path) -> Value {
    let folder = home.join(".aws");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["credentials", "config"] {
        std::fs::write(folder.join(name), case[name].as_str().unwrap()).unwrap();
    }
    let mut variables: HashMap<String, String> = serde_json::from_value(case["variables"].clone()).unwrap();
    variables.insert("HOME".to_owned(), home.to_str().unwrap().to_owned());
    variables.insert("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned());
    match Profile::find(&|name| variables.get(name).cloned()).keys {
        Keys::Given(found) => {
            json!(["given", found.access_key, found.session_token.as_ref().map(|token| token.expose())])
        }
        Keys::Fetched(source) => match *source {
            CredentialSource::SignOn(_) => json!(["sso"]),
            CredentialSource::Process(_) => json!(["custom-process"]),
            CredentialSource::Role { .. } => json!(["assume-role"]),
            CredentialSource::WebIdentity { .. } => json!(["assume-role-with-web-identity"]),
            other => panic!("{other:?}"),
        },
        Keys::Wrong(problem) => json!(["error", problem]),
        Keys::Elsewhere(other) => json!(["elsewhere", other]),
        Keys::Half(..) => json!(["error", "PartialCredentialsError"]),
        Keys::NoProfile => json!(["error", "ProfileNotFound"]),
        Keys::None => json!(["none"]),
    }
}

#[test]
fn amazons_library_and_we_find_the_same_keys() {
    let cases = cases();
    let output = match judge("find_keys.py", &cases.clone().into()) {
        Ok(output) => output,
        Err(missing) => {
            println!("skipped amazons_library_and_we_find_the_same_keys: {missing}");
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let home = std::env::temp_dir().join(format!("toolwright-keys-{}", std::process::id()));
    let mut wrong = Vec::new();
    for (case, theirs) in cases.iter().zip(&theirs) {
        let ours = ours(case, &home);
        // Keys in the environment need no profile, also when one is named that is not there.
        let needless = ours[1] == "E" && *theirs == json!(["error", "ProfileNotFound"]);
        if ours != *theirs && !needless {
            wrong.push(format!("{case}\n  ours {ours}, theirs {theirs}"));
        }
    }
    std::fs::remove_dir_all(home).unwrap();
    assert!(wrong.is_empty(), "{} of {} differ\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// The services that give out keys, and a model. Whoever asks for keys is given a name that says who asked
/// for what.
fn service(request: &Request) -> Reply {
    let form = String::from_utf8_lossy(&request.body).into_owned();
    let field = |name: &str| {
        let found = form.split('&').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_default().rsplit("%2F").next().unwrap_or_default().to_owned()
    };
    let path = request.target.split_once("/at/").map_or("", |(_, path)| path);
    let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
    let plain = |name: String| {
        let until = Civil::of_system(SystemTime::now() + Duration::from_secs(3600));
        Reply::json(
            200,
            &json!({"Code": "Success", "AccessKeyId": name, "SecretAccessKey": "fetched", "Token": format!("{name}-token"),
                "Expiration": format!("{until}Z")}),
        )
    };
    match path {
        "" => {
            let name = match field("Action").as_str() {
                "AssumeRole" => format!("{}.{}{}", signer(request), field("RoleArn"), field("ExternalId")),
                _ => format!("{}.{}", field("WebIdentityToken"), field("RoleArn")),
            };
            let action = field("Action");
            Reply::of(
                "text/xml",
                format!(
                    "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>\
                     <AccessKeyId>{name}</AccessKeyId><SecretAccessKey>fetched</SecretAccessKey>\
                     <SessionToken>{name}-token</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>\
                     </Credentials></{action}Result></{action}Response>"
                ),
            )
        }
        "token" => {
            Reply::json(200, &json!({"accessToken": "renewed", "expiresIn": 3600, "refreshToken": "next"}))
        }
        "keys" => plain(format!("container.{}", header("authorization"))),
        "latest/api/token" => Reply::of("text/plain", "machine"),
        "latest/meta-data/iam/security-credentials/" => Reply::of("text/plain", "r1"),
        "latest/meta-data/iam/security-credentials/r1" => {
            plain(format!("{}.r1", header("x-aws-ec2-metadata-token")))
        }
        "model/m/converse" => Reply::json(
            200,
            &json!({"output": {"message": {"role": "assistant", "content": [{"text": "fine"}]}},
                "stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
                "metrics": {"latencyMs": 1}}),
        ),
        path if path.starts_with("federation/credentials?") => {
            let token = header("x-amz-sso_bearer_token");
            if token == "refused" {
                return Reply::json(401, &json!({"message": "Session token not found or invalid"}));
            }
            let name = format!("{token}.{}", path.contains("role_name=r&account_id=1") as u8);
            Reply::json(
                200,
                &json!({"roleCredentials": {"accessKeyId": name, "secretAccessKey": "fetched",
                    "sessionToken": "t", "expiration": 4_000_000_000_000_u64}}),
            )
        }
        _ => Reply::json(404, &json!({"message": "nobody is here"})),
    }
}

/// Whose key signed a request.
fn signer(request: &Request) -> String {
    let header = request.header("authorization").unwrap_or_default();
    let key = header.split_once("Credential=").and_then(|(_, rest)| rest.split('/').next());
    key.unwrap_or("nobody").to_owned()
}

/// What the services are asked, in the words that count: everything but signatures, times and names of
/// sessions.
fn essence(request: &Request) -> String {
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let mut fields: Vec<_> = body
        .split('&')
        .filter(|field| !field.starts_with("RoleSessionName=bo") && !field.starts_with("RoleSessionName=to"))
        .collect();
    fields.sort_unstable();
    let body = match request.json() {
        // The model is asked in the words of each; that is tested elsewhere.
        Value::Object(_) if request.target.ends_with("/converse") => String::new(),
        Value::Object(object) => {
            let mut object: Vec<_> = object.into_iter().collect();
            object.sort_by(|a, b| a.0.cmp(&b.0));
            format!("{object:?}")
        }
        _ => fields.join("&"),
    };
    let names = ["x-amz-sso_bearer_token", "x-amz-security-token", "x-aws-ec2-metadata-token"];
    let mut said: Vec<_> =
        names.iter().filter_map(|name| Some(format!("{name}={}", request.header(name)?))).collect();
    let scope = request.header("authorization").unwrap_or_default();
    said.push(match scope.split_once("Credential=") {
        // Who, where and for which service, without the day.
        Some((_, rest)) => rest
            .split(',')
            .next()
            .unwrap_or_default()
            .split('/')
            .enumerate()
            .filter(|(at, _)| *at != 1)
            .map(|(_, part)| part)
            .collect::<Vec<_>>()
            .join("/"),
        None => scope.to_owned(),
    });
    let target = request.target.trim_end_matches('/');
    format!("{} {target} {body} {}", request.method, said.join(" "))
}

/// The cases: a name, and the environment. `HERE` is the address of the services.
const FETCHED: [(&str, &[(&str, &str)]); 14] = [
    ("program", &[("AWS_PROFILE", "program")]),
    ("role", &[("AWS_PROFILE", "role")]),
    ("chain", &[("AWS_PROFILE", "chain")]),
    ("own", &[("AWS_PROFILE", "own")]),
    ("by-program", &[("AWS_PROFILE", "by-program")]),
    ("by-container", &[("AWS_PROFILE", "by-container"), ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "HERE/keys")]),
    ("by-machine", &[("AWS_PROFILE", "by-machine"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "HERE/")]),
    ("web", &[("AWS_PROFILE", "web")]),
    (
        "web-set",
        &[
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/token"),
            ("AWS_ROLE_ARN", "arn:aws:iam::1:role/set"),
            ("AWS_ROLE_SESSION_NAME", "me"),
        ],
    ),
    ("sso", &[("AWS_PROFILE", "sso")]),
    ("sso-old", &[("AWS_PROFILE", "sso-old")]),
    ("sso-ended", &[("AWS_PROFILE", "sso-ended")]),
    (
        "container",
        &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "HERE/keys"), ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "word")],
    ),
    ("machine", &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "HERE")]),
];

const CONFIG: &str = "\
[profile program]
credential_process = sh -c 'printf %s \"$1\"' x '{\"Version\": 1, \"AccessKeyId\": \"P\", \"SecretAccessKey\": \"p\", \"SessionToken\": \"#1\"}'
[profile keys]
aws_access_key_id = K
aws_secret_access_key = k
[profile role]
role_arn = arn:aws:iam::1:role/one
source_profile = keys
external_id = E1
duration_seconds = 1800
role_session_name = me
[profile chain]
role_arn = arn:aws:iam::1:role/two
source_profile = role
[profile own]
role_arn = arn:aws:iam::1:role/own
source_profile = own
aws_access_key_id = O
aws_secret_access_key = o
[profile by-program]
role_arn = arn:aws:iam::1:role/p
source_profile = program
[profile by-container]
role_arn = arn:aws:iam::1:role/c
credential_source = EcsContainer
[profile by-machine]
role_arn = arn:aws:iam::1:role/m
credential_source = Ec2InstanceMetadata
[profile web]
role_arn = arn:aws:iam::1:role/web
web_identity_token_file = HOME/token
[profile sso]
sso_session = corp
sso_account_id = 1
sso_role_name = r
[sso-session corp]
sso_start_url = https://corp.example/start
sso_region = us-east-1
sso_registration_scopes = sso:account:access
[profile sso-old]
sso_start_url = https://old.example/start
sso_region = us-east-1
sso_account_id = 1
sso_role_name = r
[profile sso-ended]
sso_session = old-corp
sso_account_id = 1
sso_role_name = r
[sso-session old-corp]
sso_start_url = https://ended.example/start
sso_region = us-east-1
sso_registration_scopes = sso:account:access
";

/// A home folder with all that the cases need. Tokens are in files that are named after a hash of who signed
/// on.
fn home(name: &str) -> PathBuf {
    let home = std::env::temp_dir().join(format!("toolwright-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&home);
    let tokens = home.join(".aws/sso/cache");
    std::fs::create_dir_all(&tokens).unwrap();
    std::fs::write(home.join("token"), "web-token").unwrap();
    let config = CONFIG.replace("HOME", home.to_str().unwrap());
    std::fs::write(home.join(".aws/config"), config).unwrap();
    for (file, start, token, until) in [
        ("ee0bfd2552fbd840c02cc48b6e823320543c450f", "corp", "signed-on", "2099-01-01T00:00:00Z"),
        ("103c764598c7bfb84492cce4b625216b27775ddd", "old", "signed-on-of-old", "2099-01-01T00:00:00UTC"),
        ("ef5a79f97bcd2fbcfe46843a045a530b4b6d9346", "ended", "ended", "2020-01-01T00:00:00Z"),
    ] {
        let token = json!({"startUrl": format!("https://{start}.example/start"), "region": "us-east-1", "accessToken": token,
            "expiresAt": until, "clientId": "client", "clientSecret": "secret", "refreshToken": "first",
            "registrationExpiresAt": "2099-01-01T00:00:00Z"});
        std::fs::write(tokens.join(format!("{file}.json")), token.to_string()).unwrap();
    }
    home
}

/// The environment of a case.
fn set(case: &str, variables: &[(&str, &str)], home: &Path, server: &Server) -> HashMap<String, String> {
    let here = format!("{}/{case}/at", server.url());
    let services = ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_SSO", "AWS_ENDPOINT_URL_SSO_OIDC"];
    let home = home.to_str().unwrap();
    let fill = |value: &str| value.replace("HERE", &here).replace("HOME", home);
    let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), fill(value)));
    let mut all: HashMap<String, String> = pairs.collect();
    all.extend(services.map(|name| (name.to_owned(), format!("{here}/"))));
    all.extend([("HOME".to_owned(), home.to_owned()), ("AWS_REGION".to_owned(), "us-east-1".to_owned())]);
    all
}

/// Asks a model twice in our way; what is wrong, if something is.
async fn ask_ours(
    case: &str,
    variables: &HashMap<String, String>,
    server: &Server,
) -> Result<(), (ModelErrorKind, String)> {
    let settings =
        ModelSettings::new().base_url(format!("{}/{case}/at", server.url())).retry(RetryPolicy::NEVER);
    let model = connect("bedrock/m", settings, |name| variables.get(name).cloned())
        .map_err(|error| (ModelErrorKind::Auth, error.to_string()))?;
    for _ in 0..2 {
        ask(&model).await.map_err(|error| (error.kind(), error.to_string()))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn amazons_library_and_we_fetch_keys_in_the_same_way() {
    let server = Server::start(service).unwrap();
    let (own, other) = (home("our-keys"), home("their-keys"));
    let cases: Vec<Value> = FETCHED
        .iter()
        .map(|(case, variables)| {
            json!({"endpoint": format!("{}/{case}/at", server.url()), "variables": set(case, variables, &other, &server)})
        })
        .collect();
    let output = match judge("fetch_keys.py", &json!({"home": other, "cases": cases})) {
        Ok(output) => output,
        Err(missing) => {
            println!("skipped amazons_library_and_we_fetch_keys_in_the_same_way: {missing}");
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: Vec<String> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(theirs.iter().all(|answer| answer == "fine"), "{theirs:?}");
    let before = server.requests();
    for (case, variables) in FETCHED {
        ask_ours(case, &set(case, variables, &own, &server), &server)
            .await
            .unwrap_or_else(|error| panic!("{case}: {error:?}"));
    }
    let after = server.requests();
    let of = |requests: &[Request], case: &str| -> Vec<String> {
        let start = format!("/{case}/at");
        requests.iter().filter(|request| request.target.starts_with(&start)).map(essence).collect()
    };
    for (case, _) in FETCHED {
        let mut wanted = of(&before, case);
        // We ask twice, and fetch once.
        wanted.extend(wanted.last().cloned());
        assert_eq!(of(after.get(before.len()..).unwrap(), case), wanted, "{case}");
    }
    // A renewed token is there for others too.
    let kept = |home: &Path| -> Value {
        let file = home.join(".aws/sso/cache/ef5a79f97bcd2fbcfe46843a045a530b4b6d9346.json");
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    };
    for name in ["accessToken", "refreshToken", "startUrl", "clientId"] {
        assert_eq!(kept(&own).get(name), kept(&other).get(name), "{name}");
    }
    for home in [own, other] {
        std::fs::remove_dir_all(home).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_cannot_be_fetched_are_explained() {
    let server = Server::start(service).unwrap();
    let home = home("no-keys");
    let config = "[profile fails]\ncredential_process = sh -c 'echo sign in first >&2; exit 3'\n\
        [profile talks]\ncredential_process = echo hello\n\
        [profile newer]\ncredential_process = echo {\\\"Version\\\":2}\n\
        [profile open]\ncredential_process = sh -c 'x\n\
        [profile none]\ncredential_process = /no/such/program\n\
        [profile nobody]\nsso_start_url = https://nobody.example\nsso_region = us-east-1\nsso_account_id = 1\nsso_role_name = r\n";
    std::fs::write(home.join(".aws/config"), config).unwrap();
    let here = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "HERE/elsewhere")];
    let token = [("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/none"), ("AWS_ROLE_ARN", "r")];
    for (profile, more, want) in [
        ("fails", &[][..], "which is to print keys, failed (exit status: 3): sign in first"),
        ("talks", &[], "`echo`, which is to print keys, printed no JSON"),
        ("newer", &[], "printed keys of another version than 1"),
        ("open", &[], "a quote is not closed"),
        ("none", &[], "cannot be run: No such file"),
        (
            "nobody",
            &[],
            "nobody has signed on at https://nobody.example: `aws sso login --profile nobody` signs on anew",
        ),
        ("", &here, "127.0.0.1, which gives out keys, answered 404: nobody is here"),
        ("", &token, "cannot read the token in"),
    ] {
        let mut variables = set("case", more, &home, &server);
        if !profile.is_empty() {
            variables.insert("AWS_PROFILE".to_owned(), profile.to_owned());
        }
        let (kind, error) = ask_ours("case", &variables, &server).await.unwrap_err();
        assert_eq!(kind, ModelErrorKind::Auth, "{profile}: {error}");
        assert!(error.contains(want), "{profile}: {error}");
    }
    std::fs::remove_dir_all(home).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_fetched_anew_before_they_end_and_never_shown() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static FETCHED: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|request| {
        if request.method == "POST" {
            let said = format!("refused: {}", request.header("x-amz-security-token").unwrap_or_default());
            return Reply::json(400, &json!({"message": said}));
        }
        // The third time the service is gone.
        match FETCHED.fetch_add(1, Ordering::SeqCst) {
            number @ 0..2 => {
                // Too close to their end to be kept.
                let until = Civil::of_system(SystemTime::now() + Duration::from_secs(60));
                let token = format!("session-token-{number}");
                Reply::json(
                    200,
                    &json!({"AccessKeyId": "K", "SecretAccessKey": "k", "Token": token, "Expiration": format!("{until}Z")}),
                )
            }
            _ => Reply::json(503, &json!({"message": "later"})),
        }
    })
    .unwrap();
    let keys = server.url();
    let settings = ModelSettings::new().base_url(server.url()).region("us-east-1").retry(RetryPolicy::NEVER);
    let environment = |name: &str| match name {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI" => Some(keys.clone()),
        _ => None,
    };
    let model = connect("bedrock/m", settings, environment).unwrap();
    for number in [0, 1, 1] {
        let error = ask(&model).await.unwrap_err();
        let sent = server.requests().pop().unwrap();
        assert_eq!(sent.header("x-amz-security-token"), Some(&*format!("session-token-{number}")));
        assert_eq!(error.to_string(), "the server answered 400: refused: [secret]");
    }
}
