//! Warnings about rules for tools and parameters that do not exist. During a run such a rule is not a
//! mistake, since tools come and go; `check` reports it before.

use serde_json::Value;
use toolwright_core::{DataError, Entry, Toolset, nearest};

use super::naming::ToolNames;
use super::policy::Policy;
use super::rule::CompiledRule;

impl Policy {
    /// The patterns of rules that match none of these tools, one sentence each.
    ///
    /// ```
    /// use toolwright_core::Toolset;
    /// use toolwright_runtime::Policy;
    ///
    /// let policy = Policy::from_yaml("- {tools: bash, decision: reject}")?;
    /// assert_eq!(policy.unknown_tools(&Toolset::new())[0].message, "rule 1: `bash` matches no tool");
    /// # Ok::<(), toolwright_runtime::PolicyError>(())
    /// ```
    pub fn unknown_tools(&self, tools: &Toolset) -> Vec<DataError> {
        self.unknown_tools_but(tools, |_| false)
    }

    /// The same without the patterns that may be about tools which are not known yet, such as those of a
    /// server that was not started.
    pub fn unknown_tools_but(&self, tools: &Toolset, open: impl Fn(&str) -> bool) -> Vec<DataError> {
        let names: Vec<&str> = tools.names().collect();
        let before = tools.iter().flat_map(|entry| &entry.tool.policy().known_as).map(|name| &**name);
        let all: Vec<&str> = names.iter().copied().chain(before).collect();
        self.each(|rule| {
            let unknown = rule.naming.about_none(&all).filter(|pattern| !open(pattern)).map(|pattern| {
                let near = perhaps(pattern, names.iter().copied());
                DataError::new(format!("`{pattern}` matches no tool{near}")).inside("tools")
            });
            unknown.collect()
        })
    }

    /// The arguments in `when` and `set` that none of the tools a rule is about can have, one sentence each.
    pub fn unknown_parameters(&self, tools: &Toolset) -> Vec<DataError> {
        self.unknown_parameters_where(tools, |_| true)
    }

    /// The same for rules that name single tools. A run has only some of the tools that a rule about `*` is
    /// written for.
    pub(crate) fn misspelt_parameters(&self, tools: &Toolset) -> Vec<DataError> {
        self.unknown_parameters_where(tools, |rule| rule.naming.names_tools())
    }

    fn unknown_parameters_where(
        &self,
        tools: &Toolset,
        counts: impl Fn(&CompiledRule) -> bool,
    ) -> Vec<DataError> {
        self.each(|rule| {
            if !counts(rule) {
                return Vec::new();
            }
            let is_about = |entry: &&Entry| {
                let before = &entry.tool.policy().known_as;
                rule.naming.is_about(ToolNames { now: &entry.tool.spec().name, before })
            };
            let about = tools.iter().filter(is_about);
            let about: Vec<&Entry> = about.collect();
            let when = rule.rule.when.keys().map(|name| ("when", name));
            let named = when.chain(rule.rule.set.keys().map(|name| ("set", name)));
            let unknown = named
                .filter(|(_, name)| !about.is_empty() && about.iter().all(|entry| cannot_have(entry, name)));
            let told = unknown.map(|(key, name)| {
                let known = about.iter().flat_map(|entry| properties(&entry.tool.spec().parameters));
                let of = match about.as_slice() {
                    [one] => format!("`{}`", one.tool.spec().name),
                    _ => "any tool the rule is about".to_owned(),
                };
                let told = format!("{of} has no parameter `{name}`{}", perhaps(name, known));
                DataError::new(told).inside(name.as_str()).inside(key)
            });
            told.collect()
        })
    }

    /// The findings, each with the number of its rule.
    fn each(&self, tell: impl Fn(&CompiledRule) -> Vec<DataError>) -> Vec<DataError> {
        let of_rule = |rule| tell(rule).into_iter().map(move |misfit| self.in_rule(rule, misfit));
        self.rules.iter().flat_map(of_rule).collect()
    }
}

fn perhaps<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map(|near| format!("; is `{near}` meant?")).unwrap_or_default()
}

/// True when the tool takes no argument of this name, nor one that the name leads into.
fn cannot_have(entry: &Entry, name: &str) -> bool {
    let schema = &entry.tool.spec().parameters;
    let open =
        ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"].iter().any(|key| schema.get(key).is_some())
            || schema.get("additionalProperties") != Some(&Value::Bool(false));
    let first = name.split('.').next().unwrap_or(name);
    let aliases = entry.tool.policy().aliases.iter().map(|(alias, _)| &**alias);
    !open && !properties(schema).chain(aliases).any(|known| known == name || known == first)
}

fn properties(schema: &Value) -> impl Iterator<Item = &str> {
    let all = schema.get("properties").and_then(Value::as_object);
    all.into_iter().flat_map(|all| all.keys()).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwright_core::{ToolDef, ToolSpec};

    #[test]
    fn what_rules_name_and_tools_do_not_have_is_told() {
        let tool = |name: &str, closed: bool| {
            let mut spec = ToolSpec::new(name, "d");
            spec.parameters = json!({
                "type": "object", "properties": {"command": {}, "options": {"type": "object"}, "a.b": {}},
                "additionalProperties": !closed
            });
            ToolDef::dynamic(spec, |_, _| async { "ok" })
        };
        let tools = Toolset::new().with(tool("bash", true)).unwrap().with(tool("open", false)).unwrap();
        let misses = |rule: &str| {
            let policy = Policy::from_yaml(&format!("- {{{rule}}}")).unwrap();
            let found = [policy.unknown_tools(&tools), policy.unknown_parameters(&tools)].concat();
            found.into_iter().map(|misfit| misfit.message).collect::<Vec<_>>()
        };
        for fine in [
            "tools: '*', decision: approve",
            "tools: [bash, '!bash(command='], decision: approve",
            "tools: bash, when: {command: x, options.path: y, a.b: z}, decision: reject",
            "tools: open, when: {anything: x}, decision: reject",
            "tools: '*', when: {anything: x}, decision: reject",
        ] {
            assert_eq!(misses(fine), Vec::<String>::new(), "{fine}");
        }
        assert_eq!(
            misses("tools: bassh, when: {comand: x}, decision: reject"),
            ["rule 1: `bassh` matches no tool; is `bash` meant?"]
        );
        assert_eq!(
            misses("tools: 'bash, !bassh(x=1', when: {comand: x}, decision: reject"),
            [
                "rule 1: `bassh` matches no tool; is `bash` meant?",
                "rule 1: `bash` has no parameter `comand`; is `command` meant?"
            ]
        );
        assert_eq!(
            misses("tools: 'b*', decision: modify, set: {zzz: 1}"),
            ["rule 1: `bash` has no parameter `zzz`"]
        );
    }
}
