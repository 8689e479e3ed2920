//! The conformance suite on each backend that needs no other program.

use toolwright_core::DynSandbox;
use toolwright_sandbox::conformance::{CHECKS, Check, CheckOutcome};
use toolwright_sandbox::{LocalSandbox, ProcessSandbox, SandboxPolicy};

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for check in CHECKS {
        cases.push(Case::new(format!("conformance::process::{}", check.name), move || async move {
            let sandbox =
                ProcessSandbox::open(SandboxPolicy::private()).await.map_err(|error| format!("{error:?}"))?;
            judge(check, &sandbox).await
        }));
        cases.push(Case::new(format!("conformance::local::{}", check.name), move || async move {
            let sandbox =
                LocalSandbox::open(SandboxPolicy::private()).await.map_err(|error| format!("{error:?}"))?;
            judge(check, &sandbox).await
        }));
    }
    cases.push(
        Case::new("conformance::there_are_at_least_the_44_of_the_original", || async {
            let mut names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
            names.sort_unstable();
            names.dedup();
            if names.len() == CHECKS.len() && names.len() >= 44 {
                Ok(())
            } else {
                Err(format!("{}", names.len()))
            }
        })
        .once(),
    );
    cases
}

async fn judge(check: &Check, sandbox: &DynSandbox) -> Result<(), String> {
    match (check.run)(sandbox).await {
        CheckOutcome::Passed => Ok(()),
        CheckOutcome::Skipped(reason) => {
            println!("skipped {} on {}: {reason}", check.name, sandbox.kind());
            Ok(())
        }
        CheckOutcome::Failed(reason) => Err(reason),
    }
}
