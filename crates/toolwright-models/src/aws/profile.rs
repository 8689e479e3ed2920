//! Credentials and regions in the files that Amazon's tools keep: `~/.aws/credentials` and `~/.aws/config`.
//!
//! Keys written there are read. Profiles that only say where keys can be had (single sign-on, roles, other programs)
//! are named in the error; `aws configure export-credentials --format env` turns them into variables.

use std::collections::HashMap;

use toolwright_core::Secret;

use super::sigv4::Credentials;

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

/// What is known of a profile's keys.
#[derive(Debug, Clone)]
pub enum Keys {
    /// They are here.
    Given(Credentials),
    /// They can be had in a way that is not followed.
    Elsewhere(&'static str),
    /// An access key without the secret one: in this place, which lacks this.
    Half(&'static str, &'static str),
    /// A profile was named, and is in neither file.
    NoProfile,
    /// Nothing says anything about keys.
    None,
}

impl Profile {
    /// Looks in the environment, then in the files it points to. The order is that of Amazon's own tools.
    pub fn find(environment: &dyn Fn(&str) -> Option<String>) -> Profile {
        let variable =
            |name: &str| environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        let file = |variable_name: &str, usual: &str| {
            let path = variable(variable_name).unwrap_or_else(|| format!("~/.aws/{usual}"));
            match (path.strip_prefix("~/"), &home) {
                (Some(rest), Some(home)) => read(&format!("{home}/{rest}")),
                (Some(_), None) => String::new(),
                (None, _) => read(&path),
            }
        };
        let mut profile = Profile::parse(
            named.as_deref(),
            &file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            &file("AWS_CONFIG_FILE", "config"),
        );
        let token = || variable("AWS_SESSION_TOKEN").or_else(|| variable("AWS_SECURITY_TOKEN"));
        if let Some(access_key) = variable("AWS_ACCESS_KEY_ID") {
            let secret_key = variable("AWS_SECRET_ACCESS_KEY");
            profile.keys = match secret_key {
                Some(secret_key) => credentials(access_key, secret_key, token()),
                None => Keys::Half("the environment", "AWS_SECRET_ACCESS_KEY"),
            };
        } else if variable("AWS_ROLE_ARN").and(variable("AWS_WEB_IDENTITY_TOKEN_FILE")).is_some()
            && !matches!(profile.keys, Keys::Elsewhere(ROLE))
        {
            profile.keys = Keys::Elsewhere(WEB_IDENTITY);
        }
        profile.region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")).or(profile.region);
        profile
    }

    /// Reads a profile, `default` when none is named, from the text of the two files.
    pub fn parse(named: Option<&str>, credentials_file: &str, config_file: &str) -> Profile {
        let name = named.unwrap_or("default");
        let (keys, settings) =
            (section(credentials_file, name, Titles::Plain), section(config_file, name, Titles::Profiles));
        let unknown = named.is_some() && keys.is_none() && settings.is_none();
        let (keys, settings) = (keys.unwrap_or_default(), settings.unwrap_or_default());
        let get = |key: &str| keys.get(key).or_else(|| settings.get(key)).cloned();
        let has = |key: &str| get(key).is_some();
        let given = |list: &HashMap<String, String>, there: &'static str| {
            let access_key = list.get("aws_access_key_id")?.clone();
            let token = list.get("aws_session_token").or_else(|| list.get("aws_security_token"));
            Some(match list.get("aws_secret_access_key") {
                Some(secret_key) => credentials(access_key, secret_key.clone(), token.cloned()),
                None => Keys::Half(there, "aws_secret_access_key"),
            })
        };
        let elsewhere = |keys: &[&str], what: &'static str| {
            keys.iter().any(|key| has(key)).then_some(Keys::Elsewhere(what))
        };
        let web_identity = || has("web_identity_token_file").then_some(Keys::Elsewhere(WEB_IDENTITY));
        let keys = web_identity()
            .or_else(|| elsewhere(&["role_arn"], ROLE))
            .or_else(|| elsewhere(&["sso_role_name", "sso_account_id"], SIGN_ON))
            .or_else(|| given(&keys, "the file of credentials"))
            .or_else(|| elsewhere(&["login_session"], "a sign-in"))
            .or_else(|| elsewhere(&["credential_process"], "a program to run"))
            .or_else(|| given(&settings, "the file of settings"))
            .or_else(|| elsewhere(&["sso_session", "sso_start_url"], SIGN_ON))
            .unwrap_or(if unknown { Keys::NoProfile } else { Keys::None });
        Profile { name: name.to_owned(), keys, region: get("region") }
    }
}

const ROLE: &str = "a role to assume";
const WEB_IDENTITY: &str = "a role to assume with a token";
const SIGN_ON: &str = "single sign-on";

fn credentials(access_key: String, secret_key: String, session_token: Option<String>) -> Keys {
    let session_token = session_token.map(Secret::new);
    Keys::Given(Credentials { access_key, secret_key: Secret::new(secret_key), session_token })
}

/// The file's text; one that is missing, too large or not text says nothing.
fn read(path: &str) -> String {
    let small = std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= MAX_FILE);
    if small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

/// How the sections of a file are titled.
#[derive(Clone, Copy, PartialEq)]
enum Titles {
    /// `[name]`.
    Plain,
    /// `[profile name]`, and `[default]`.
    Profiles,
}

impl Titles {
    fn names(self, title: &str, name: &str) -> bool {
        let title = title.trim();
        match self {
            Titles::Plain => title == name,
            Titles::Profiles => {
                let profile = title.strip_prefix("profile").filter(|rest| rest.starts_with([' ', '\t']));
                let profile = profile.map(|rest| {
                    let rest = rest.trim();
                    let quoted = |quote: char| rest.strip_prefix(quote)?.strip_suffix(quote);
                    quoted('"').or_else(|| quoted('\'')).unwrap_or(rest)
                });
                profile == Some(name) || (name == "default" && title == "default")
            }
        }
    }
}

/// The settings of a profile; `None` when the file does not know it.
fn section(text: &str, name: &str, titles: Titles) -> Option<HashMap<String, String>> {
    let mut settings: Option<HashMap<String, String>> = None;
    let mut inside = false;
    // How far the last setting was indented. What is indented further belongs to it, and none of ours is so long.
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
            // A remark may follow; no key or region holds a blank.
            let end = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| value.find(mark)).min();
            let value = value.get(..end.unwrap_or(value.len())).unwrap_or_default().trim();
            if !value.is_empty() {
                settings.insert(key.trim().to_ascii_lowercase(), value.to_owned());
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

    /// What is known of the keys, in a word.
    fn told(keys: &Keys) -> &str {
        match keys {
            Keys::Given(credentials) => &credentials.access_key,
            Keys::Elsewhere(what) => what,
            Keys::Half(_, missing) => missing,
            Keys::NoProfile => "no profile",
            Keys::None => "none",
        }
    }

    #[test]
    fn keys_and_regions_are_found_under_their_profile() {
        let profile = Profile::parse(None, CREDENTIALS, CONFIG);
        let Keys::Given(credentials) = profile.keys else { panic!("{profile:?}") };
        assert_eq!((&*credentials.access_key, credentials.secret_key.expose()), ("A", "S"));
        assert_eq!(
            (profile.region.as_deref(), credentials.session_token.is_none()),
            (Some("eu-west-1"), true)
        );

        let profile = Profile::parse(Some("work"), CREDENTIALS, CONFIG);
        let Keys::Given(credentials) = profile.keys else { panic!("{profile:?}") };
        assert_eq!((credentials.secret_key.expose(), profile.region.as_deref()), ("T=", Some("us-west-2")));
        assert_eq!(credentials.session_token.unwrap().expose(), "token");

        assert_eq!(told(&Profile::parse(Some("sso"), CREDENTIALS, CONFIG).keys), "single sign-on");
        let nobody = Profile::parse(Some("nobody"), CREDENTIALS, CONFIG);
        assert_eq!((told(&nobody.keys), nobody.region), ("no profile", None));
    }

    #[test]
    fn the_environment_comes_before_the_files() {
        let folder = std::env::temp_dir().join(format!("toolwright-aws-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(".aws")).unwrap();
        std::fs::write(folder.join(".aws/credentials"), CREDENTIALS).unwrap();
        std::fs::write(folder.join(".aws/config"), CONFIG).unwrap();
        let home = folder.to_str().unwrap().to_owned();
        let found = |variables: &[(&str, &str)]| {
            Profile::find(&|name| match name {
                "HOME" => Some(home.clone()),
                _ => variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()),
            })
        };
        let work = found(&[("AWS_PROFILE", "work")]);
        assert_eq!((told(&work.keys), work.region.as_deref()), ("B", Some("us-west-2")));
        let keys = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "V")];
        let given = found(&[keys[0], keys[1], ("AWS_DEFAULT_REGION", "sa-east-1")]);
        assert_eq!((told(&given.keys), given.region.as_deref()), ("E", Some("sa-east-1")));
        assert_eq!(told(&found(&keys[..1]).keys), "AWS_SECRET_ACCESS_KEY");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
