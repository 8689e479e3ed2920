//! Calls that a model asked for and that are not made: each is taken out, and gets the result that says why.

use toolwright_core::{ErrorInfo, ErrorKind, StopReason, ToolCall, ToolResult, Toolset};

use crate::direct;

/// The results of calls that are not made, with the places that the calls had.
pub(crate) type Refusals = Vec<(usize, ToolResult)>;

/// Calls of a reply that ended before it was whole: one that was refused, that cannot be read, or that ended
/// for an unknown reason. In a reply that was cut off, the model's client has marked the calls that are not
/// whole.
pub(super) fn unfinished(stop: StopReason, calls: &mut Vec<ToolCall>) -> Refusals {
    if !matches!(stop, StopReason::Refusal | StopReason::MalformedCall | StopReason::Other) {
        return Refusals::new();
    }
    let why = stop.warning().unwrap_or("the answer was not whole");
    let message = format!("this call was not made: {why}");
    take_out(calls, |_| Some((ErrorKind::Cancelled, message.clone(), None)))
}

/// Calls of tools that exist and were not offered to the model this time.
pub(super) fn unoffered(offered: &Toolset, all: &Toolset, calls: &mut Vec<ToolCall>) -> Refusals {
    take_out(calls, |call| {
        if offered.find(&call.name).is_ok() || all.find(&call.name).is_err() {
            return None;
        }
        let names: Vec<&str> = offered.names().collect();
        let message = format!("the tool `{}` was not offered this time, so it was not called", call.name);
        let hint = match names.as_slice() {
            [] => "no tools are available now: answer without one".to_owned(),
            names => format!("what was offered: {}", names.join(", ")),
        };
        Some((ErrorKind::Parsing, message, Some(hint)))
    })
}

/// All calls of a turn that was asked for more than `max` times in a row. `last` when the model gets no more
/// tools.
pub(super) fn repeated(max: u64, last: bool, calls: &mut Vec<ToolCall>) -> Refusals {
    let message = format!("not run: you asked for the same {max} times in a row, and got the same result");
    let hint = match last {
        false => "answer with the result you have, or do something else",
        true => "no more tools are available: answer now, with the results you have",
    };
    take_out(calls, |_| Some((ErrorKind::Limit, message.clone(), Some(hint.to_owned()))))
}

/// Calls whose results go to the user, and that are made beside others.
pub(super) fn mixed(tools: &Toolset, calls: &mut Vec<ToolCall>) -> Refusals {
    let direct = calls.iter().filter(|call| direct::is_direct(tools, &call.name)).count();
    if direct == 0 || direct == calls.len() {
        return Refusals::new();
    }
    take_out(calls, |call| {
        let name = &call.name;
        direct::is_direct(tools, name).then(|| {
            let message =
                format!("the result of `{name}` goes to the user, so it cannot be called beside others");
            let hint = "call it alone, in a message of its own".to_owned();
            (ErrorKind::Parsing, message, Some(hint))
        })
    })
}

/// Takes out the calls for which there is a reason: the kind of error, its message and its hint.
fn take_out(
    calls: &mut Vec<ToolCall>,
    mut reason: impl FnMut(&ToolCall) -> Option<(ErrorKind, String, Option<String>)>,
) -> Refusals {
    let mut refusals = Refusals::new();
    let mut place = 0;
    calls.retain(|call| {
        let refused = reason(call);
        let stays = refused.is_none();
        if let Some((kind, message, hint)) = refused {
            refusals.push((place, ToolResult::failed(call, ErrorInfo { kind, message, hint })));
        }
        place += 1;
        stays
    });
    refusals
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwright_core::{ToolDef, ToolSpec};

    use super::*;

    fn tools(names: &[&str]) -> Toolset {
        names.iter().fold(Toolset::new(), |tools, name| {
            let tool = ToolDef::dynamic(ToolSpec::new(*name, "d"), |_, _| async { "ok" });
            tools.with(tool.edit(|_, settings| settings.return_direct = *name == "direct")).unwrap()
        })
    }

    fn calls(names: &[&str]) -> Vec<ToolCall> {
        names.iter().map(|name| ToolCall::new(*name, *name, json!({}))).collect()
    }

    #[test]
    fn what_is_taken_out_keeps_its_place_and_its_reason() {
        type Filter = fn(&mut Vec<ToolCall>) -> Refusals;
        type Row<'a> = (&'a [&'a str], Filter, &'a [&'a str], &'a [usize], ErrorKind);
        let rows: [Row<'_>; 8] = [
            (
                &["a", "b"],
                |calls| unfinished(StopReason::EndTurn, calls),
                &["a", "b"],
                &[],
                ErrorKind::Unknown,
            ),
            (&["a", "b"], |calls| unfinished(StopReason::Refusal, calls), &[], &[0, 1], ErrorKind::Cancelled),
            (&["a", "b", "a"], |calls| repeated(2, false, calls), &[], &[0, 1, 2], ErrorKind::Limit),
            (
                &["a", "b", "nosuch"],
                |calls| unoffered(&tools(&["b"]), &tools(&["a", "b"]), calls),
                &["b", "nosuch"],
                &[0],
                ErrorKind::Parsing,
            ),
            (
                &["a"],
                |calls| unoffered(&tools(&["a"]), &tools(&["a"]), calls),
                &["a"],
                &[],
                ErrorKind::Unknown,
            ),
            (
                &["a", "direct", "nosuch"],
                |calls| mixed(&tools(&["a", "direct"]), calls),
                &["a", "nosuch"],
                &[1],
                ErrorKind::Parsing,
            ),
            (
                &["direct", "direct"],
                |calls| mixed(&tools(&["direct"]), calls),
                &["direct", "direct"],
                &[],
                ErrorKind::Unknown,
            ),
            (&["a", "a"], |calls| mixed(&tools(&["a"]), calls), &["a", "a"], &[], ErrorKind::Unknown),
        ];
        for (asked, filter, stays, places, kind) in rows {
            let mut left = calls(asked);
            let refused = filter(&mut left);
            assert_eq!(left, calls(stays), "{asked:?}");
            assert_eq!(refused.iter().map(|(place, _)| *place).collect::<Vec<_>>(), places, "{asked:?}");
            for (place, result) in &refused {
                assert_eq!((&*result.name, result.error.as_ref().unwrap().kind), (asked[*place], kind));
            }
        }
    }
}
