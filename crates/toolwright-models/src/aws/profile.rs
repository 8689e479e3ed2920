//! Credentials and regions in the environment and in the files that Amazon's tools keep: `~/.aws/credentials`
//! and `~/.aws/config`. The order is that of Amazon's own tools.
//!
//! Literal keys are read here. For the others only their [`CredentialSource`] is determined; no request is
//! made yet.

use std::collections::HashMap;
use std::path::PathBuf;

use toolwright_core::Secret;

use super::sigv4::Credentials;
use super::source::{AssumedRole, Container, CredentialSource, Machine, SignOn};

/// The most bytes of such a file.
const MAX_FILE: u64 = 1 << 20;

/// Where credentials and the region come from.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The profile's name.
    pub name: String,
    /// The keys, as far as they are here.
    pub keys: Keys,
    /// The region.
    pub region: Option<String>,
}

/// A profile's keys, or where they come from.
#[derive(Debug, Clone)]
pub enum Keys {
    /// Literal keys.
    Given(Credentials),
    /// Keys to fetch from this source.
    Fetched(Box<CredentialSource>),
    /// A source that is not supported.
    Elsewhere(&'static str),
    /// The profile describes a source wrongly.
    Wrong(String),
    /// An access key without its secret key: where it was found, and the name of what is missing.
    Half(&'static str, &'static str),
    /// A profile was named that is in neither file.
    NoProfile,
    /// No keys are configured.
    None,
}

impl Profile {
    /// Looks in the environment, then in the files it points to, then for a container or EC2 instance.
    pub fn find(environment: &dyn Fn(&str) -> Option<String>) -> Profile {
        let variable =
            |name: &str| environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        let in_home = |path: String| match (path.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => Some(format!("{home}/{rest}")),
            (Some(_), None) => None,
            (None, _) => Some(path),
        };
        let file = |variable_name: &str, usual: &str| {
            let path = variable(variable_name).unwrap_or_else(|| format!("~/.aws/{usual}"));
            in_home(path).map(|path| read(&path)).unwrap_or_default()
        };
        let name = named.as_deref().unwrap_or("default");
        let lookup = CredentialLookup {
            variable: &variable,
            credentials: file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            config: file("AWS_CONFIG_FILE", "config"),
            tokens: in_home("~/.aws/sso/cache".to_owned()).map(PathBuf::from),
        };
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.or_else(|| lookup.all(name)?.remove("region"));
        let keys = lookup.keys(name, named.is_some(), region.as_deref().unwrap_or(NO_REGION));
        Profile { name: name.to_owned(), keys, region }
    }
}

/// Where roles are asked for when no region is named.
const NO_REGION: &str = "us-east-1";

type Settings = HashMap<String, String>;

/// The inputs of a credential lookup.
struct CredentialLookup<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of the two files.
    credentials: String,
    config: String,
    /// The folder with cached single sign-on tokens.
    tokens: Option<PathBuf>,
}

impl CredentialLookup<'_> {
    /// The settings of a profile in both files; `None` when it is in neither.
    fn all(&self, name: &str) -> Option<Settings> {
        let keys = section(&self.credentials, name, Titles::Plain);
        let settings = section(&self.config, name, Titles::Profiles("profile"));
        match (settings, keys) {
            (None, None) => None,
            (settings, keys) => {
                let mut all = settings.unwrap_or_default();
                all.extend(keys.unwrap_or_default());
                Some(all)
            }
        }
    }

    fn keys(&self, name: &str, named: bool, region: &str) -> Keys {
        let variable = self.variable;
        if let Some(keys) = self.in_environment() {
            return keys;
        }
        let all = self.all(name);
        let known = all.is_some();
        let all = all.unwrap_or_default();
        let web = || {
            let set = [
                ("web_identity_token_file", "AWS_WEB_IDENTITY_TOKEN_FILE"),
                ("role_arn", "AWS_ROLE_ARN"),
                ("role_session_name", "AWS_ROLE_SESSION_NAME"),
            ];
            let mut all = all.clone();
            all.extend(set.into_iter().filter_map(|(key, name)| Some((key.to_owned(), variable(name)?))));
            self.web_identity(&all, region)
        };
        let found = self.role(name, &mut vec![name.to_owned()], region);
        let found = found.or_else(web).or_else(|| self.written(name));
        match found {
            Some(keys) => keys,
            None if named && !known => Keys::NoProfile,
            None => self.of_container().or_else(|| self.of_machine()).unwrap_or(Keys::None),
        }
    }

    fn in_environment(&self) -> Option<Keys> {
        let variable = self.variable;
        let access_key = variable("AWS_ACCESS_KEY_ID")?;
        let token = variable("AWS_SESSION_TOKEN").or_else(|| variable("AWS_SECURITY_TOKEN"));
        Some(match variable("AWS_SECRET_ACCESS_KEY") {
            Some(secret_key) => credentials(access_key, secret_key, token),
            None => Keys::Half("the environment", "AWS_SECRET_ACCESS_KEY"),
        })
    }

    /// What a profile says of keys beside roles that are taken on with other keys.
    fn written(&self, name: &str) -> Option<Keys> {
        let keys = section(&self.credentials, name, Titles::Plain).unwrap_or_default();
        let settings = section(&self.config, name, Titles::Profiles("profile")).unwrap_or_default();
        let all = self.all(name)?;
        let has = |key: &str| all.contains_key(key);
        let given = |list: &Settings, there: &'static str| {
            let access_key = list.get("aws_access_key_id")?.clone();
            let token = list.get("aws_session_token").or_else(|| list.get("aws_security_token"));
            Some(match list.get("aws_secret_access_key") {
                Some(secret_key) => credentials(access_key, secret_key.clone(), token.cloned()),
                None => Keys::Half(there, "aws_secret_access_key"),
            })
        };
        let program = || Some(fetched(CredentialSource::Process(all.get("credential_process")?.clone())));
        let signs_on = has("sso_role_name") || has("sso_account_id");
        signs_on
            .then(|| self.sign_on(name, &all))
            .or_else(|| given(&keys, "the file of credentials"))
            .or_else(|| has("login_session").then_some(Keys::Elsewhere("a sign-in of `aws login`")))
            .or_else(program)
            .or_else(|| given(&settings, "the file of settings"))
            .or_else(|| (has("sso_session") || has("sso_start_url")).then(|| self.sign_on(name, &all)))
    }

    /// A role that is taken on with other keys.
    fn role(&self, name: &str, visited: &mut Vec<String>, region: &str) -> Option<Keys> {
        let all = self.all(name)?;
        if !is_role(&all) {
            return None;
        }
        if all.contains_key("mfa_serial") {
            return Some(Keys::Elsewhere("a role that asks for a code of a second device"));
        }
        let keys = match (all.get("source_profile"), all.get("credential_source").map(String::as_str)) {
            (Some(source), None) => self.source(name, source, visited, region),
            (None, Some("Environment")) => self.in_environment().unwrap_or_else(|| {
                wrong("it takes its role with the keys of the environment, which are not set")
            }),
            (None, Some("EcsContainer")) => self.of_container().unwrap_or_else(|| {
                wrong("it takes its role with the keys of a container, and this is not a container")
            }),
            (None, Some("Ec2InstanceMetadata")) => fetched(CredentialSource::Machine(self.machine())),
            (None, Some(other)) => {
                Keys::Wrong(format!("its `credential_source` is {other:?}, which is not known"))
            }
            (Some(_), Some(_)) => wrong("it has both a `source_profile` and a `credential_source`"),
            (None, None) => wrong("its role needs a `source_profile` or a `credential_source`"),
        };
        Some(match (keys, self.assumed(&all, region)) {
            (keys @ (Keys::Given(_) | Keys::Fetched(_)), Ok(role)) => {
                fetched(CredentialSource::Role { role, keys })
            }
            (Keys::Given(_) | Keys::Fetched(_), Err(problem)) => problem,
            (problem, _) => problem,
        })
    }

    /// The keys of the profile that a role is taken on with.
    fn source(&self, parent: &str, source: &str, visited: &mut Vec<String>, region: &str) -> Keys {
        let Some(all) = self.all(source) else {
            return Keys::Wrong(format!("its `source_profile` {source:?} is not there"));
        };
        let keys = all.contains_key("aws_access_key_id") || all.contains_key("aws_secret_access_key");
        if visited.iter().any(|one| one == source) && !(source == parent && keys) {
            return wrong("its source profiles lead in a circle");
        }
        visited.push(source.to_owned());
        let found = match keys || !is_role(&all) {
            true => self.web_identity(&all, region).or_else(|| self.written(source)),
            false => self.role(source, visited, region),
        };
        found.unwrap_or_else(|| Keys::Wrong(format!("its `source_profile` {source:?} has no keys")))
    }

    /// A role assumed with a web identity token.
    fn web_identity(&self, all: &Settings, region: &str) -> Option<Keys> {
        let token_file = PathBuf::from(all.get("web_identity_token_file")?);
        Some(match self.assumed(all, region) {
            Ok(role) => fetched(CredentialSource::WebIdentity { role, token_file }),
            Err(problem) => problem,
        })
    }

    fn assumed(&self, all: &Settings, region: &str) -> Result<AssumedRole, Keys> {
        let text = |key: &str| all.get(key).cloned();
        let arn = text("role_arn").ok_or_else(|| wrong("it has a token and no `role_arn`"))?;
        let address = self.address("STS", region, |region| format!("https://sts.{region}.amazonaws.com"))?;
        let seconds = text("duration_seconds");
        if seconds.as_ref().is_some_and(|seconds| seconds.parse::<u32>().is_err()) {
            return Err(wrong("its `duration_seconds` is not a number"));
        }
        Ok(AssumedRole {
            arn,
            session: text("role_session_name"),
            external_id: text("external_id"),
            seconds,
            region: region.to_owned(),
            address,
        })
    }

    fn sign_on(&self, name: &str, all: &Settings) -> Keys {
        let mut all = all.clone();
        if let Some(session) = all.get("sso_session") {
            match section(&self.config, session, Titles::Profiles("sso-session")) {
                Some(session) => all.extend(session),
                None => return Keys::Wrong(format!("its `sso_session` {session:?} is not there")),
            }
        }
        let text = |key: &str| {
            all.get(key).cloned().ok_or_else(|| Keys::Wrong(format!("its single sign-on lacks `{key}`")))
        };
        let sign_on = || {
            let region = text("sso_region")?;
            Ok(SignOn {
                profile: name.to_owned(),
                start: text("sso_start_url")?,
                account: text("sso_account_id")?,
                role: text("sso_role_name")?,
                tokens: self
                    .tokens
                    .clone()
                    .ok_or_else(|| wrong("its tokens are in the home folder, and `HOME` is not set"))?,
                portal: self
                    .address("SSO", &region, |region| format!("https://portal.sso.{region}.amazonaws.com"))?,
                renewal: self
                    .address("SSO_OIDC", &region, |region| format!("https://oidc.{region}.amazonaws.com"))?,
            })
        };
        match sign_on() {
            Ok(sign_on) => fetched(CredentialSource::SignOn(sign_on)),
            Err(problem) => problem,
        }
    }

    /// Where a service is.
    fn address(&self, service: &str, region: &str, usual: impl Fn(&str) -> String) -> Result<String, Keys> {
        let set = (self.variable)(&format!("AWS_ENDPOINT_URL_{service}"))
            .or_else(|| (self.variable)("AWS_ENDPOINT_URL"));
        match set {
            Some(set) => Ok(set.trim_end_matches('/').to_owned()),
            None if is_region(region) => Ok(usual(region)),
            None => Err(Keys::Wrong(format!("{region:?} is not a region"))),
        }
    }

    fn of_container(&self) -> Option<Keys> {
        let variable = self.variable;
        let near = |path: String| format!("http://169.254.170.2{path}");
        let address = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map(near);
        let address = address.or_else(|| variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"))?;
        if !Container::may_be_asked(&address) {
            return Some(wrong(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI names a host that must not be asked without TLS",
            ));
        }
        let token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(Secret::new);
        let token_file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map(PathBuf::from);
        Some(fetched(CredentialSource::Container(Container { address, token, token_file })))
    }

    /// The keys of the machine, where it is one of Amazon's or an address says where to ask.
    fn of_machine(&self) -> Option<Keys> {
        let off = (self.variable)("AWS_EC2_METADATA_DISABLED");
        let named = (self.variable)(METADATA).is_some();
        let asked =
            !off.is_some_and(|off| off.eq_ignore_ascii_case("true")) && (named || Machine::is_amazons());
        asked.then(|| fetched(CredentialSource::Machine(self.machine())))
    }

    fn machine(&self) -> Machine {
        let address = (self.variable)(METADATA).unwrap_or_else(|| "http://169.254.169.254".to_owned());
        Machine { address: address.trim_end_matches('/').to_owned() }
    }
}

/// Where the machine's own service for keys is.
const METADATA: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

fn is_role(all: &Settings) -> bool {
    all.contains_key("role_arn") && !all.contains_key("web_identity_token_file")
}

/// Whether this may become part of a host's name.
pub(crate) fn is_region(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&name.len()) && name.bytes().all(good)
}

fn fetched(source: CredentialSource) -> Keys {
    Keys::Fetched(Box::new(source))
}

fn wrong(problem: &str) -> Keys {
    Keys::Wrong(problem.to_owned())
}

fn credentials(access_key: String, secret_key: String, session_token: Option<String>) -> Keys {
    let session_token = session_token.map(Secret::new);
    Keys::Given(Credentials { access_key, secret_key: Secret::new(secret_key), session_token })
}

/// The file's text; empty when the file is missing, too large or not UTF-8.
fn read(path: &str) -> String {
    let small = std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= MAX_FILE);
    if small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

/// How the sections of a file are titled.
#[derive(Clone, Copy, PartialEq)]
enum Titles {
    /// `[name]`.
    Plain,
    /// `[profile name]`, and `[default]`; or with another word.
    Profiles(&'static str),
}

impl Titles {
    fn names(self, title: &str, name: &str) -> bool {
        let title = title.trim();
        match self {
            Titles::Plain => title == name,
            Titles::Profiles(word) => {
                let profile = title.strip_prefix(word).filter(|rest| rest.starts_with([' ', '\t']));
                let profile = profile.map(|rest| {
                    let rest = rest.trim();
                    let quoted = |quote: char| rest.strip_prefix(quote)?.strip_suffix(quote);
                    quoted('"').or_else(|| quoted('\'')).unwrap_or(rest)
                });
                profile == Some(name) || (word == "profile" && name == "default" && title == "default")
            }
        }
    }
}

/// The settings of a profile; `None` when the file does not know it.
fn section(text: &str, name: &str, titles: Titles) -> Option<HashMap<String, String>> {
    let mut settings: Option<HashMap<String, String>> = None;
    let mut inside = false;
    // How far the last setting was indented. What is indented further belongs to it, and none of ours is so
    // long.
    let mut depth = usize::MAX;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        if indent > depth {
            continue;
        }
        if let Some(title) = trimmed.strip_prefix('[') {
            inside = titles.names(title.split(']').next().unwrap_or_default(), name);
            settings = settings.or_else(|| inside.then(HashMap::new));
            depth = usize::MAX;
            continue;
        }
        depth = indent;
        if let (true, Some((key, value)), Some(settings)) =
            (inside, trimmed.split_once('='), settings.as_mut())
        {
            // A remark may follow, but for a command, which is all there is.
            let key = key.trim().to_ascii_lowercase();
            let marks: &[&str] = if key == "credential_process" { &[] } else { &[" #", " ;", "\t#", "\t;"] };
            let end = marks.iter().filter_map(|mark| value.find(mark)).min();
            let value = value.get(..end.unwrap_or(value.len())).unwrap_or_default().trim();
            if !value.is_empty() {
                settings.insert(key, value.to_owned());
            }
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "[default]\naws_access_key_id = A\naws_secret_access_key=S\n\n# note\n[ work ]\n\
        aws_access_key_id = B\naws_secret_access_key = T=\naws_session_token = token # temporary\n";
    const CONFIG: &str = "[default]\nregion = eu-west-1\ns3 =\n  region = nowhere\n[profile work]\nregion=us-west-2\n\
        [profile sso]\nsso_session = corp\nregion = eu-central-1\n";

    /// The kind of the keys, as one word.
    fn told(keys: &Keys) -> &str {
        match keys {
            Keys::Given(credentials) => &credentials.access_key,
            Keys::Fetched(source) => match &**source {
                CredentialSource::SignOn(sign_on) => &sign_on.role,
                CredentialSource::Role { role, .. } | CredentialSource::WebIdentity { role, .. } => &role.arn,
                CredentialSource::Process(command) => command,
                CredentialSource::Container(container) => &container.address,
                CredentialSource::Machine(machine) => &machine.address,
            },
            Keys::Elsewhere(what) => what,
            Keys::Wrong(problem) => problem,
            Keys::Half(_, missing) => missing,
            Keys::NoProfile => "no profile",
            Keys::None => "none",
        }
    }

    /// What is found with these variables, and these files.
    fn find(variables: &[(&str, &str)], credentials: &str, config: &str) -> Profile {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let home = std::env::temp_dir().join(format!("toolwright-aws-{}-{number}", std::process::id()));
        std::fs::create_dir_all(home.join(".aws")).unwrap();
        std::fs::write(home.join(".aws/credentials"), credentials).unwrap();
        std::fs::write(home.join(".aws/config"), config).unwrap();
        let found = Profile::find(&|name| match name {
            "HOME" => Some(home.to_str().unwrap().to_owned()),
            _ => variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()),
        });
        std::fs::remove_dir_all(home).unwrap();
        found
    }

    #[test]
    fn keys_and_regions_are_found_under_their_profile() {
        let profile = find(&[], CREDENTIALS, CONFIG);
        let Keys::Given(credentials) = profile.keys else { panic!("{profile:?}") };
        assert_eq!((&*credentials.access_key, credentials.secret_key.expose()), ("A", "S"));
        assert_eq!(
            (profile.region.as_deref(), credentials.session_token.is_none()),
            (Some("eu-west-1"), true)
        );

        let profile = find(&[("AWS_PROFILE", "work")], CREDENTIALS, CONFIG);
        let Keys::Given(credentials) = profile.keys else { panic!("{profile:?}") };
        assert_eq!((credentials.secret_key.expose(), profile.region.as_deref()), ("T=", Some("us-west-2")));
        assert_eq!(credentials.session_token.unwrap().expose(), "token");

        let nobody = find(&[("AWS_PROFILE", "nobody")], CREDENTIALS, CONFIG);
        assert_eq!((told(&nobody.keys), nobody.region), ("no profile", None));
    }

    #[test]
    fn profiles_that_cannot_be_right_are_explained() {
        let off = [("AWS_EC2_METADATA_DISABLED", "true")];
        let role = "[default]\nrole_arn = R\n";
        let sign_on = "[default]\nsso_session = corp\nsso_account_id = 1\n";
        for (config, want) in [
            (role.to_owned(), "its role needs a `source_profile` or a `credential_source`"),
            (format!("{role}source_profile = x\n"), "its `source_profile` \"x\" is not there"),
            (
                format!("{role}source_profile = x\n[profile x]\nregion = r\n"),
                "its `source_profile` \"x\" has no keys",
            ),
            (
                format!("{role}source_profile = x\n[profile x]\nrole_arn = S\nsource_profile = default\n"),
                "its source profiles lead in a circle",
            ),
            (format!("{role}source_profile = default\n"), "its source profiles lead in a circle"),
            (
                format!("{role}source_profile = default\ncredential_source = Environment\n"),
                "it has both a `source_profile` and a `credential_source`",
            ),
            (
                format!("{role}credential_source = Moon\n"),
                "its `credential_source` is \"Moon\", which is not known",
            ),
            (
                format!("{role}credential_source = Environment\n"),
                "it takes its role with the keys of the environment, which are not set",
            ),
            (
                format!("{role}credential_source = EcsContainer\n"),
                "it takes its role with the keys of a container, and this is not a container",
            ),
            (
                format!("{role}mfa_serial = m\nsource_profile = x\n"),
                "a role that asks for a code of a second device",
            ),
            ("[default]\nweb_identity_token_file = /t\n".to_owned(), "it has a token and no `role_arn`"),
            (sign_on.to_owned(), "its `sso_session` \"corp\" is not there"),
            (format!("{sign_on}[sso-session corp]\n"), "its single sign-on lacks `sso_region`"),
            (
                format!("{sign_on}sso_role_name=r\n[sso-session corp]\nsso_start_url=u\nsso_region=a.b/c\n"),
                "\"a.b/c\" is not a region",
            ),
        ] {
            assert_eq!(told(&find(&off, "", &config).keys), want, "{config}");
        }
        let far = [off[0], ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://keys.example/")];
        assert!(told(&find(&far, "", "").keys).contains("must not be asked without TLS"));
        assert_eq!(told(&find(&off, "", "").keys), "none");
    }

    #[test]
    fn the_environment_comes_before_the_files() {
        let found = |variables: &[(&str, &str)]| find(variables, CREDENTIALS, CONFIG);
        let work = found(&[("AWS_PROFILE", "work")]);
        assert_eq!((told(&work.keys), work.region.as_deref()), ("B", Some("us-west-2")));
        let keys = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "V")];
        let given = found(&[keys[0], keys[1], ("AWS_DEFAULT_REGION", "sa-east-1")]);
        assert_eq!((told(&given.keys), given.region.as_deref()), ("E", Some("sa-east-1")));
        assert_eq!(told(&found(&keys[..1]).keys), "AWS_SECRET_ACCESS_KEY");
    }
}
