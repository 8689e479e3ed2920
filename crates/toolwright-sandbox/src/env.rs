//! The environment of a program: rebuilt for each call, never inherited as a whole.

use std::collections::BTreeMap;

use crate::policy::EnvPolicy;

/// The search path when `PATH` is not set.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Puts an environment together: our defaults, then the caller's variables the policy passes on, then what
/// the policy sets, then what this call sets.
pub(crate) fn build(
    policy: &EnvPolicy,
    call: &BTreeMap<String, String>,
    home: &str,
    user: &str,
    look_up: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = [
        ("PATH", PATH),
        ("HOME", home),
        ("USER", user),
        ("LOGNAME", user),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
        ("SHELL", "/bin/sh"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    env.extend(policy.pass.iter().filter_map(|name| Some((name.clone(), look_up(name)?))));
    env.extend(policy.set.clone());
    env.extend(call.clone());
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_are_passed_on_and_the_call_has_the_last_word() {
        let host = |name: &str| match name {
            "PASSED" => Some("from the host".to_owned()),
            "SECRET" => Some("never".to_owned()),
            _ => None,
        };
        let policy = EnvPolicy {
            pass: vec!["PASSED".into(), "ABSENT".into()],
            set: [("A".into(), "policy".into()), ("B".into(), "policy".into())].into(),
        };
        let env = build(&policy, &[("B".into(), "call".into())].into(), "/home/x", "x", host);
        let seen: Vec<_> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let want = [
            "A=policy",
            "B=call",
            "HOME=/home/x",
            "LANG=C.UTF-8",
            "LOGNAME=x",
            "PASSED=from the host",
            &format!("PATH={PATH}"),
            "SHELL=/bin/sh",
            "TMPDIR=/tmp",
            "USER=x",
        ];
        assert_eq!(seen, want);
    }
}
