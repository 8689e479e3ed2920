//! Object-safe twins of the traits that users implement with `async fn`. Every implementation has its twin by
//! itself; `DynTool` and its like are the types to hold one in a pointer.

use std::future::Future;
use std::sync::Arc;

use serde_json::Value;

use crate::approval::{ApprovalRequest, Approver, Decision};
use crate::context::ToolContext;
use crate::effect::{CallEffect, EffectJudge};
use crate::error::ToolError;
use crate::model::{DeltaSink, Model, ModelError, ModelReply, ModelRequest, Usage};
use crate::output::ToolOutput;
use crate::person::{Form, FormReply, Notice, Person};
use crate::prepare::{Arguments, Prepared};
use crate::sandbox::{
    Connection, ExecRequest, ExecResult, OutputSink, ProcessHandle, Sandbox, SandboxProcess, SpawnRequest,
    TerminalSize,
};
use crate::tool::{BoxFuture, Handoff, RewriteResults, Tool, ToolSpec};
use crate::tool_policy::ToolPolicy;
use crate::toolset::{ToolSource, Toolset};

/// Boxes the future of a call, or takes it from a method that has it in a box.
macro_rules! boxed {
    ($trait:ident $call:ident($($argument:expr),*)) => { Box::pin($trait::$call($($argument),*)) };
    ($trait:ident $call:ident($($argument:expr),*) as $hook:ident) => { $trait::$hook($($argument),*) };
}

/// From the methods of a trait: its twin, the twin of every implementation, and the trait again for the twin
/// and for pointers.
macro_rules! erased {
    (
        $object:ident = $trait:ident as $twin:ident {
            $(fn $name:ident(&self $(, $argument:ident: $ty:ty)*) $(-> $output:ty)?;)*
            $(async fn $call:ident<$life:lifetime>(&self $(, $input:ident: $input_ty:ty)*) -> $result:ty $(as $hook:ident)?;)*
        }
    ) => {
        #[doc = concat!("Any [`", stringify!($trait), "`], behind a pointer.")]
        pub type $object = dyn $twin;

        #[doc(hidden)]
        pub trait $twin: Send + Sync {
            $(fn $name(&self $(, $argument: $ty)*) $(-> $output)?;)*
            $(fn $call<$life>(&$life self $(, $input: $input_ty)*) -> BoxFuture<$life, $result>;)*
        }

        impl<X: $trait> $twin for X {
            $(fn $name(&self $(, $argument: $ty)*) $(-> $output)? {
                $trait::$name(self $(, $argument)*)
            })*
            $(fn $call<$life>(&$life self $(, $input: $input_ty)*) -> BoxFuture<$life, $result> {
                boxed!($trait $call(self $(, $input)*) $(as $hook)?)
            })*
        }

        impl $trait for $object {
            $(fn $name(&self $(, $argument: $ty)*) $(-> $output)? {
                $twin::$name(self $(, $argument)*)
            })*
            $(fn $call<$life>(
                &$life self $(, $input: $input_ty)*
            ) -> impl Future<Output = $result> + Send {
                $twin::$call(self $(, $input)*)
            })*
        }

        impl<X: $trait + ?Sized> $trait for Arc<X> {
            $(fn $name(&self $(, $argument: $ty)*) $(-> $output)? {
                <X as $trait>::$name(self $(, $argument)*)
            })*
            $(fn $call<$life>(
                &$life self $(, $input: $input_ty)*
            ) -> impl Future<Output = $result> + Send {
                <X as $trait>::$call(self $(, $input)*)
            })*
        }

        impl<X: $trait + ?Sized> $trait for Box<X> {
            $(fn $name(&self $(, $argument: $ty)*) $(-> $output)? {
                <X as $trait>::$name(self $(, $argument)*)
            })*
            $(fn $call<$life>(
                &$life self $(, $input: $input_ty)*
            ) -> impl Future<Output = $result> + Send {
                <X as $trait>::$call(self $(, $input)*)
            })*
        }
    };
}

erased! {
    DynTool = Tool as ErasedTool {
        fn spec(&self) -> &ToolSpec;
        fn policy(&self) -> &ToolPolicy;
        fn prepare(&self, arguments: Arguments<'_>) -> Result<Prepared, ToolError>;
        fn result_rewriter(&self) -> Option<&dyn RewriteResults>;
        fn handoff(&self) -> Option<&dyn Handoff>;
        fn identity(&self) -> Option<u64>;
        async fn call<'a>(&self, context: &'a ToolContext, arguments: Value) -> Result<ToolOutput, ToolError>
            as call_boxed;
    }
}

erased! {
    DynToolSource = ToolSource as ErasedToolSource {
        fn name(&self) -> &str;
        async fn tools<'a>(&self) -> Result<Toolset, ToolError>;
    }
}

erased! {
    DynModel = Model as ErasedModel {
        fn name(&self) -> &str;
        fn cost(&self, usage: &Usage) -> Option<f64>;
        async fn generate<'a>(&self, request: ModelRequest<'a>) -> Result<ModelReply, ModelError>;
        async fn generate_streaming<'a>(
            &self, request: ModelRequest<'a>, sink: DeltaSink<'a>
        ) -> Result<ModelReply, ModelError>;
    }
}

erased! {
    DynApprover = Approver as ErasedApprover {
        fn name(&self) -> &str;
        async fn decide<'a>(&self, request: &'a ApprovalRequest<'a>) -> Decision;
    }
}

erased! {
    DynPerson = Person as ErasedPerson {
        fn name(&self) -> &str;
        async fn approve<'a>(&self, request: &'a ApprovalRequest<'a>) -> Decision;
        async fn answer<'a>(&self, form: &'a Form) -> FormReply;
        async fn notify<'a>(&self, notice: &'a Notice) -> ();
    }
}

erased! {
    DynSandbox = Sandbox as ErasedSandbox {
        fn kind(&self) -> &str;
        fn isolates(&self) -> bool;
        fn sets_search_path(&self) -> bool;
        fn layers(&self) -> Vec<String>;
        fn judged_by(&self, judge: Arc<dyn EffectJudge>) -> Option<Arc<DynSandbox>>;
        async fn exec<'a>(&self, command: ExecRequest) -> Result<ExecResult, ToolError>;
        async fn exec_live<'a>(
            &self, command: ExecRequest, sink: &'a dyn OutputSink
        ) -> Result<ExecResult, ToolError>;
        async fn spawn<'a>(&self, command: SpawnRequest) -> Result<SandboxProcess, ToolError>;
        async fn write_file<'a>(&self, path: &'a str, contents: &'a [u8]) -> Result<(), ToolError>;
        async fn read_file<'a>(&self, path: &'a str) -> Result<Vec<u8>, ToolError>;
        async fn read_text<'a>(&self, path: &'a str) -> Result<String, ToolError>;
        async fn connection<'a>(&self, user: Option<&'a str>) -> Result<Option<Connection>, ToolError>;
    }
}

erased! {
    DynProcessHandle = ProcessHandle as ErasedProcessHandle {
        fn resize(&self, size: TerminalSize) -> Result<(), ToolError>;
        fn layers(&self) -> &[String];
        async fn wait<'a>(&self) -> Result<i32, ToolError>;
        async fn kill<'a>(&self) -> ();
        async fn signal<'a>(&self, signal: i32) -> Result<(), ToolError>;
        async fn commit<'a>(&self, judge: Option<Arc<dyn EffectJudge>>) -> Result<CallEffect, ToolError>;
    }
}
