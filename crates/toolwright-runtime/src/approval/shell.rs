//! Rules over the text of a shell: they are asked about every command, redirection and assignment in it, and
//! the strictest answer holds. What cannot be read, or does not show what it runs, is asked about.

use serde_json::Value;
use toolwright_core::ToolCall;
use toolwright_shell::{ShellPart, parts};

use super::matching::{meant, real_name};
use super::policy::{Policy, Ruling};
use super::rule::{CompiledRule, JudgedCall, RuleDecision};

/// The ruling about a call whose arguments hold text for a shell, in place of `whole`, the ruling about that
/// text as it stands; `None` when no rule looks at such text.
pub(super) fn judged(policy: &Policy, first: usize, case: &JudgedCall<'_>, whole: &Ruling) -> Option<Ruling> {
    let mut strictest: Option<Ruling> = None;
    for parameter in shell_parameters(policy, case) {
        let values = meant(&case.call.arguments, &case.spec.parameters, &case.tool.aliases, parameter);
        let Some(Value::String(text)) = values.first() else { continue };
        let Some(judge) = ShellJudge::new(policy, first, case, parameter, text) else { continue };
        add(&mut strictest, judge.ruling(whole));
    }
    strictest
}

/// The parameters of a tool whose text a shell runs: the tool says so, or a rule does.
fn shell_parameters<'a>(policy: &'a Policy, case: &JudgedCall<'a>) -> Vec<&'a str> {
    let mut all: Vec<&str> = case.tool.shell.iter().map(|name| &**name).collect();
    for rule in policy.rules.iter().filter(|rule| rule.naming.is_about(case.names())) {
        let named = rule.shell_parameters();
        all.extend(named.map(|name| real_name(name, &case.spec.parameters, &case.tool.aliases)));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Puts a ruling beside the strictest so far. What rules set is put together.
fn add(strictest: &mut Option<Ruling>, ruling: Ruling) {
    let Some(best) = strictest else {
        *strictest = Some(ruling);
        return;
    };
    let mut all = std::mem::take(&mut best.set);
    for (name, value) in &ruling.set {
        all.entry(name).or_insert_with(|| value.clone());
    }
    if ruling.decision > best.decision {
        *best = ruling;
    }
    best.set = all;
}

/// Judges the text of one parameter.
struct ShellJudge<'a> {
    policy: &'a Policy,
    first: usize,
    case: JudgedCall<'a>,
    parameter: &'a str,
    text: &'a str,
    /// The rules that look at the text, by index.
    looking: Vec<usize>,
    /// Whether the other rules let the call run, whatever its text.
    lets_any_pass: bool,
    /// Whether a rule that looks at the text is stricter than to let it run.
    refuses_some: bool,
}

impl<'a> ShellJudge<'a> {
    /// `None` when the text need not be read: no rule looks at it, or they decide nothing that the others do
    /// not.
    fn new(
        policy: &'a Policy,
        first: usize,
        case: &JudgedCall<'a>,
        parameter: &'a str,
        text: &'a str,
    ) -> Option<Self> {
        let rules = || policy.rules.iter().enumerate().skip(first);
        let looking: Vec<usize> =
            rules().filter(|(_, rule)| rule.looks_at(parameter, case)).map(|(index, _)| index).collect();
        let (&next, strictest) = (looking.first()?, rules().filter(|(index, _)| looking.contains(index)));
        let strictest = strictest.map(|(_, rule)| rule.rule.decision).max()?;
        let others = policy.ruling_by(first, case, |index, rule| {
            !looking.contains(&index) && (!policy.takes_first() || index < next) && rule.matches(case)
        });
        let others = others.map(|ruling| ruling.decision);
        let decided = match policy.takes_first() {
            true => others.is_some(),
            false => match others {
                Some(RuleDecision::Approve) => strictest == RuleDecision::Approve,
                Some(other) => other >= RuleDecision::Reject && other >= strictest,
                None => false,
            },
        };
        (!decided).then(|| ShellJudge {
            policy,
            first,
            case: *case,
            parameter,
            text,
            looking,
            lets_any_pass: others.is_some_and(|other| other <= RuleDecision::Modify),
            refuses_some: strictest > RuleDecision::Modify,
        })
    }

    fn ruling(&self, whole: &Ruling) -> Ruling {
        let named = self.rules_looking().any(|rule| {
            let lets_pass = rule.rule.lets_pass() && rule.matches(&self.case);
            lets_pass && rule.names_exactly(self.parameter, self.text, &self.case)
        });
        let parts = match parts(self.text) {
            Ok(parts) => parts,
            Err(_) if named || whole.decision > RuleDecision::Ask => return whole.clone(),
            Err(problem) => return asked(problem.to_string()),
        };
        let mut strictest = None;
        let mut around: Vec<&str> = vec![self.text];
        for part in &parts {
            add(&mut strictest, self.part(part, named));
            let new = part.wrappers.iter().map(String::as_str);
            around.extend(new.filter(|wrapper| !around.contains(wrapper)).collect::<Vec<_>>());
        }
        if strictest.is_none() {
            // There is nothing to run.
            return whole.clone();
        }
        for text in around {
            if let Some(refused) = self.refused(text) {
                add(&mut strictest, refused);
            }
        }
        strictest.unwrap_or_else(|| whole.clone())
    }

    /// The ruling about one part of the text. `named` says that a rule approves this very text.
    fn part(&self, part: &ShellPart, named: bool) -> Ruling {
        let call = self.with(&part.text);
        let case = JudgedCall { call: &call, ..self.case };
        let matched = self.policy.ruling_by(self.first, &case, |index, rule| {
            rule.matches(&case) || self.is_refusing(index, rule) && self.spelled(rule, part)
        });
        let ruling = match matched {
            Some(ruling) => ruling,
            None if named => Ruling::of(RuleDecision::Approve, None),
            None => {
                let reason = format!("no rule is about `{}`", shortened(&part.text));
                self.policy.unmatched(self.case.tool, &reason)
            }
        };
        if named || ruling.decision >= RuleDecision::Ask {
            return ruling;
        }
        match self.doubt(part, &case) {
            Some(doubt) => {
                let reason = format!("`{}`: {doubt}", shortened(&part.text));
                Ruling { set: ruling.set, ..asked(reason) }
            }
            None => ruling,
        }
    }

    /// Why a person is asked about a part that the rules let run.
    fn doubt(&self, part: &ShellPart, case: &JudgedCall<'_>) -> Option<String> {
        if let Some(why) = part.opaque.as_ref().filter(|_| self.refuses_some || !self.lets_any_pass) {
            return Some(why.clone());
        }
        if !self.refuses_some {
            return None;
        }
        let approved = || self.rules_looking().any(|rule| rule.rule.lets_pass() && rule.matches(case));
        if part.runs_file && !approved() {
            return Some("it runs the commands of a file, which no rule sees".to_owned());
        }
        let may_be_refused = |(index, rule): (usize, &CompiledRule)| {
            self.is_refusing(index, rule) && self.may_match(rule, part)
        };
        let refused = part.is_computed() && self.policy.rules.iter().enumerate().any(may_be_refused);
        refused.then(|| "what it computes may make it a command that a rule is stricter about".to_owned())
    }

    /// The ruling about a text as a whole, where a rule that looks at it is stricter than to let it run.
    fn refused(&self, text: &str) -> Option<Ruling> {
        let call = self.with(text);
        let case = JudgedCall { call: &call, ..self.case };
        if self.policy.takes_first() {
            let rules = self.policy.rules.iter().enumerate().skip(self.first);
            let (index, rule) = rules.into_iter().find(|(_, rule)| rule.matches(&case))?;
            if !self.is_refusing(index, rule) {
                return None;
            }
        }
        self.policy
            .ruling_by(self.first, &case, |index, rule| self.is_refusing(index, rule) && rule.matches(&case))
    }

    fn rules_looking(&self) -> impl Iterator<Item = &CompiledRule> {
        self.looking.iter().filter_map(|index| self.policy.rules.get(*index))
    }

    /// Whether a rule looks at the text and is stricter than to let it run.
    fn is_refusing(&self, index: usize, rule: &CompiledRule) -> bool {
        rule.rule.decision > RuleDecision::Modify && self.looking.contains(&index)
    }

    /// Whether a rule is about another spelling of a command.
    fn spelled(&self, rule: &CompiledRule, part: &ShellPart) -> bool {
        let patterns = rule.patterns(self.parameter, &self.case);
        let mut spellings = patterns.iter().flat_map(|(pattern, _)| part.spellings(pattern));
        spellings.any(|spelling| self.is_about(rule, &spelling))
    }

    /// Whether a rule may be about a command once its computed words are known.
    fn may_match(&self, rule: &CompiledRule, part: &ShellPart) -> bool {
        rule.patterns(self.parameter, &self.case).into_iter().any(|(pattern, is_glob)| {
            let spelling = part.possible_spelling(pattern);
            is_glob && part.may_match(pattern)
                || spelling.is_some_and(|spelling| self.is_about(rule, &spelling))
        })
    }

    fn is_about(&self, rule: &CompiledRule, text: &str) -> bool {
        let call = self.with(text);
        rule.matches(&JudgedCall { call: &call, ..self.case })
    }

    /// The call with another text.
    fn with(&self, text: &str) -> ToolCall {
        let mut call = self.case.call.clone();
        if !call.arguments.is_object() {
            call.arguments = Value::Object(serde_json::Map::new());
        }
        if let Some(arguments) = call.arguments.as_object_mut() {
            arguments.insert(self.parameter.to_owned(), text.into());
        }
        call
    }
}

fn asked(reason: String) -> Ruling {
    Ruling::of(RuleDecision::Ask, Some(reason))
}

/// The beginning of a text, for a reason that is one line long.
fn shortened(text: &str) -> String {
    toolwright_core::text::clip(&text.replace('\n', " "), 120)
}
