//! Amazon's own library as the judge of which keys are used.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolwright_models::aws::profile::{Keys, Profile};

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
    match Profile::find(&|name| variables.get(name).cloned()).keys {
        Keys::Given(found) => {
            json!(["given", found.access_key, found.session_token.as_ref().map(|token| token.expose())])
        }
        Keys::Elsewhere("single sign-on") => json!(["sso"]),
        Keys::Elsewhere("a program to run") => json!(["custom-process"]),
        Keys::Elsewhere("a role to assume") => json!(["assume-role"]),
        Keys::Elsewhere(_) => json!(["assume-role-with-web-identity"]),
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
