//! Answers the hooks of agents that people already run: each call of their tools is judged by our rules
//! before it is made, and recorded. Whatever goes wrong refuses the call.

mod agent_tools;
mod contract;
pub mod install;
mod ruling;
mod session_record;

use std::io::Read as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use crate::args::{HookAnswer, HookClient};
use crate::console::Console;
use crate::report::Usage;

use self::contract::{HookEvent, HookInput};
use self::ruling::Rules;
use self::session_record::SessionRecord;

/// The most that is read of one event: it holds a call and its result.
const MAX_INPUT: u64 = 32 << 20;

/// After this long the call is refused. Agents go on without an answer when theirs is over, which is later.
const PATIENCE: Duration = Duration::from_secs(20);

/// Answers one event. An error about a call that is not made yet refuses it: agents take exit code 2 as a
/// refusal, and any other as a hook that does not work, which stops nothing.
pub fn run(what: &HookAnswer, console: &Console) -> anyhow::Result<()> {
    let client = what.client.ok_or_else(|| {
        Usage::new("--client is missing").hint("name the agent that asks: claude-code or codex")
    })?;
    refuse_when_late(console);
    let answered = std::panic::catch_unwind(AssertUnwindSafe(|| answer(what, client, console)));
    let outcome = answered.unwrap_or_else(|_| Err(anyhow::anyhow!("the hook failed")));
    outcome.map_err(|error| match error.downcast::<AfterTheCall>() {
        Ok(after) => after.0,
        Err(error) if error.is::<Usage>() => error,
        Err(error) => Usage::new(format!("{error:#}")).into(),
    })
}

/// A failure about a call that has been made: nothing can be refused any more.
#[derive(Debug)]
struct AfterTheCall(anyhow::Error);

impl std::fmt::Display for AfterTheCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for AfterTheCall {}

fn answer(what: &HookAnswer, client: HookClient, console: &Console) -> anyhow::Result<()> {
    let input = read(console)?;
    let record = |write: &dyn Fn(&mut SessionRecord) -> anyhow::Result<()>| match what.record.no_record {
        true => Ok(()),
        false => SessionRecord::open(client, &input, what.record.transcript.as_deref())
            .and_then(|mut record| write(&mut record)),
    };
    match input.event {
        HookEvent::PreToolUse | HookEvent::PermissionRequest => {
            let verdict = Rules::read(what.policy.as_deref())?.judge(&input)?;
            // What cannot be recorded does not happen.
            record(&|record| record.decided(&input, &verdict))?;
            if let Some(answer) = contract::answer(client, input.event, &verdict) {
                console.line(answer)?;
            }
            Ok(())
        }
        HookEvent::PostToolUse | HookEvent::PostToolUseFailure => {
            record(&|record| record.finished(&input)).map_err(|error| AfterTheCall(error).into())
        }
        HookEvent::SessionEnd => record(&SessionRecord::ended).map_err(|error| AfterTheCall(error).into()),
        HookEvent::Other => Ok(()),
    }
}

fn read(console: &Console) -> anyhow::Result<HookInput> {
    let mut text = String::new();
    let input = console.stdin().lock().take(MAX_INPUT + 1).read_to_string(&mut text);
    input.map_err(|error| Usage::new(format!("cannot read the call from stdin: {error}")))?;
    if text.len() as u64 > MAX_INPUT {
        return Err(Usage::new(format!("the call has more than {MAX_INPUT} bytes")).into());
    }
    HookInput::read(&text).map_err(|why| {
        let problem = Usage::new(format!("what is on stdin is not an event of an agent: {why}"));
        problem.hint("`toolwright hook install` has an agent send its calls").into()
    })
}

/// Ends this process with a refusal when it takes too long.
fn refuse_when_late(console: &Console) {
    let console = console.clone();
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        console.say("error: the rules were not evaluated in time, so the call is refused");
        std::process::exit(2);
    });
}
