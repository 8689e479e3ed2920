//! Where commands and file operations of tools happen. With the feature `sandbox`: sandboxes of Linux and of
//! container engines.

#[doc(inline)]
pub use toolwright_core::{
    CallEffect, ChangeKind, EFFECT_NOTE, EffectJudge, EffectOutcome, EffectVerdict, FileChange, KeepReason,
    KeptBackChange, MAX_JUDGED_CHANGES, MAX_LISTED_CHANGES, StagedEffect,
};
#[doc(inline)]
pub use toolwright_core::{
    Connection, DynProcessHandle, DynSandbox, ExecRequest, ExecResult, MAX_EXEC_OUTPUT, MAX_READ_FILE,
    OutputSink, OutputStream, Preparation, ProcessHandle, Sandbox, SandboxProcess, SpawnRequest,
    TerminalSize,
};
#[cfg(feature = "sandbox")]
#[doc(inline)]
pub use toolwright_effects as effects;
#[cfg(all(feature = "sandbox", feature = "testkit"))]
#[doc(inline)]
pub use toolwright_sandbox::conformance;
#[cfg(feature = "sandbox")]
#[doc(inline)]
pub use toolwright_sandbox::{
    Access, BACKENDS, Backend, Changes, EngineSandbox, EnvPolicy, Explanation, Layer, LayerReport,
    LocalSandbox, MASKED, Network, NetworkEvent, PROTECTED, ProcessSandbox, SYSTEM, SandboxLimits,
    SandboxPolicy, ViewEntry, explain, launcher, nearest_backend, open, probe, probe_staging, remedy,
    sandboxes_ended,
};
