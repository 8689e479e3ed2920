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
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// The profile's name.
    pub name: String,
    /// The keys, when the profile holds them.
    pub credentials: Option<Credentials>,
    /// The region.
    pub region: Option<String>,
    /// The kind of a profile that holds no keys but knows where they can be had.
    pub elsewhere: Option<&'static str>,
}

impl Profile {
    /// Looks in the environment, then in the files it points to.
    pub fn find(environment: &dyn Fn(&str) -> Option<String>) -> Profile {
        let variable =
            |name: &str| environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let name = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        let file = |variable_name: &str, usual: &str| {
            let path =
                variable(variable_name).or_else(|| home.as_ref().map(|home| format!("{home}/.aws/{usual}")));
            path.as_deref().map(read).unwrap_or_default()
        };
        let mut profile = Profile::parse(
            &name,
            &file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            &file("AWS_CONFIG_FILE", "config"),
        );
        if let (Some(access_key), Some(secret_key)) =
            (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"))
        {
            let session_token = variable("AWS_SESSION_TOKEN").map(Secret::new);
            profile.credentials =
                Some(Credentials { access_key, secret_key: Secret::new(secret_key), session_token });
        }
        profile.region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")).or(profile.region);
        profile
    }

    /// Reads a profile from the text of the two files.
    pub fn parse(name: &str, credentials: &str, config: &str) -> Profile {
        let keys = section(credentials, &[name]);
        let titled = format!("profile {name}");
        let settings = section(config, if name == "default" { &["default", "profile default"] } else { &[] });
        let settings = if settings.is_empty() { section(config, &[&titled]) } else { settings };
        let get = |key: &str| keys.get(key).or_else(|| settings.get(key)).cloned();
        let elsewhere = [
            ("sso_session", "single sign-on"),
            ("sso_start_url", "single sign-on"),
            ("role_arn", "a role to assume"),
            ("credential_process", "a program to run"),
        ];
        let elsewhere = elsewhere.iter().find(|(key, _)| get(key).is_some()).map(|(_, kind)| *kind);
        let credentials = match (get("aws_access_key_id"), get("aws_secret_access_key")) {
            (Some(access_key), Some(secret_key)) => Some(Credentials {
                access_key,
                secret_key: Secret::new(secret_key),
                session_token: get("aws_session_token").map(Secret::new),
            }),
            _ => None,
        };
        Profile { name: name.to_owned(), credentials, region: get("region"), elsewhere }
    }
}

/// The file's text; one that is missing, too large or not text says nothing.
fn read(path: &str) -> String {
    let small = std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= MAX_FILE);
    if small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

/// The settings under any of these titles.
fn section(text: &str, titles: &[&str]) -> HashMap<String, String> {
    let mut inside = false;
    let mut settings = HashMap::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(title) = trimmed.strip_prefix('[') {
            let title = title.split(']').next().unwrap_or_default();
            let title: Vec<&str> = title.split_whitespace().collect();
            inside = titles.contains(&title.join(" ").as_str());
            continue;
        }
        // An indented line belongs to a nested setting, which none of ours is.
        let nested = line.starts_with([' ', '\t']);
        if !inside || nested || trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some((key, value)) = trimmed.split_once('=') {
            let value = value.split(" #").next().unwrap_or_default().trim();
            settings.insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    settings.retain(|_, value| !value.is_empty());
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "[default]\naws_access_key_id = A\naws_secret_access_key=S\n\n# note\n[ work ]\n\
        aws_access_key_id = B\naws_secret_access_key = T=\naws_session_token = token # temporary\n";
    const CONFIG: &str = "[default]\nregion = eu-west-1\ns3 =\n  region = nowhere\n[profile work]\nregion=us-west-2\n\
        [profile sso]\nsso_session = corp\nregion = eu-central-1\n";

    #[test]
    fn keys_and_regions_are_found_under_their_profile() {
        let profile = Profile::parse("default", CREDENTIALS, CONFIG);
        let credentials = profile.credentials.unwrap();
        assert_eq!((&*credentials.access_key, credentials.secret_key.expose()), ("A", "S"));
        assert_eq!(
            (profile.region.as_deref(), credentials.session_token.is_none()),
            (Some("eu-west-1"), true)
        );

        let profile = Profile::parse("work", CREDENTIALS, CONFIG);
        let credentials = profile.credentials.unwrap();
        assert_eq!((credentials.secret_key.expose(), profile.region.as_deref()), ("T=", Some("us-west-2")));
        assert_eq!(credentials.session_token.unwrap().expose(), "token");

        let profile = Profile::parse("sso", CREDENTIALS, CONFIG);
        assert_eq!((profile.credentials.is_none(), profile.elsewhere), (true, Some("single sign-on")));
        assert!(Profile::parse("nobody", CREDENTIALS, CONFIG).region.is_none());
    }

    #[test]
    fn the_environment_comes_before_the_files() {
        let folder = std::env::temp_dir().join(format!("toolwright-aws-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(".aws")).unwrap();
        std::fs::write(folder.join(".aws/credentials"), CREDENTIALS).unwrap();
        std::fs::write(folder.join(".aws/config"), CONFIG).unwrap();
        let home = folder.to_str().unwrap().to_owned();
        let found = Profile::find(&|name| match name {
            "HOME" => Some(home.clone()),
            "AWS_PROFILE" => Some("work".into()),
            _ => None,
        });
        assert_eq!(
            (found.credentials.unwrap().access_key.as_str(), found.region.as_deref()),
            ("B", Some("us-west-2"))
        );
        let found = Profile::find(&|name| match name {
            "HOME" => Some(home.clone()),
            "AWS_ACCESS_KEY_ID" => Some("E".into()),
            "AWS_SECRET_ACCESS_KEY" => Some("V".into()),
            "AWS_DEFAULT_REGION" => Some("sa-east-1".into()),
            _ => None,
        });
        assert_eq!(
            (found.credentials.unwrap().access_key.as_str(), found.region.as_deref()),
            ("E", Some("sa-east-1"))
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
