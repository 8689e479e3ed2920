//! What the tests share: a folder, a sandbox on it, and a run with tools.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use serde_json::Value;
use toolwright_core::schema::Schema;
use toolwright_core::{Content, DynSandbox, ErrorKind, ToolCall, ToolDef, ToolResult, Toolset};
use toolwright_runtime::Run;
use toolwright_sandbox::{LocalSandbox, ProcessSandbox, SandboxPolicy};
use toolwright_tools::standard;

pub(crate) type Future = Pin<Box<dyn std::future::Future<Output = ()> + Send>>;

/// One test, run on every backend.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Backend) -> Future,
}

/// Names a function as a case.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) fn cases() -> Vec<$crate::support::Case> {
            vec![$($crate::support::Case { name: stringify!($name), run: |backend| Box::pin($name(backend)) }),*]
        }
    };
}
pub(crate) use cases;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Local,
    Process,
}

static PROCESS_WORKS: LazyLock<bool> = LazyLock::new(|| {
    let opened = std::thread::spawn(|| block_on(ProcessSandbox::open(SandboxPolicy::private()))).join();
    matches!(opened, Ok(Ok(_)))
});

impl Backend {
    pub(crate) const ALL: [Backend; 2] = [Backend::Local, Backend::Process];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Backend::Local => "local",
            Backend::Process => "process",
        }
    }

    /// True where the machine cannot run this backend; its tests are then reported as ignored.
    pub(crate) fn missing(self) -> bool {
        self == Backend::Process && !*PROCESS_WORKS
    }

    pub(crate) async fn open(self, policy: SandboxPolicy) -> Arc<DynSandbox> {
        match self {
            Backend::Local => Arc::new(LocalSandbox::open(policy).await.unwrap()),
            Backend::Process => Arc::new(ProcessSandbox::open(policy).await.unwrap()),
        }
    }
}

pub(crate) fn block_on<T>(future: impl std::future::Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// A run with tools, in a folder of its own.
pub(crate) struct Bench {
    pub(crate) run: Run,
    pub(crate) sandbox: Arc<DynSandbox>,
    pub(crate) folder: PathBuf,
    _temporary: tempfile::TempDir,
}

impl Bench {
    /// All standard tools.
    pub(crate) async fn new(backend: Backend) -> Bench {
        Bench::with(backend, standard().unwrap()).await
    }

    pub(crate) async fn of(backend: Backend, tools: impl IntoIterator<Item = ToolDef>) -> Bench {
        let set = tools.into_iter().fold(Toolset::new(), |set, tool| set.with(tool).unwrap());
        Bench::with(backend, set).await
    }

    pub(crate) async fn with(backend: Backend, tools: Toolset) -> Bench {
        let temporary = tempfile::tempdir().unwrap();
        // Inside the sandbox the files may belong to somebody else.
        std::fs::set_permissions(temporary.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .unwrap();
        let folder = temporary.path().canonicalize().unwrap();
        let mut policy = SandboxPolicy { workspace: Some(folder.clone()), ..SandboxPolicy::private() };
        // A login shell reads files of the home folder; tests must not depend on the developer's.
        let home = folder.join(".home");
        policy.env.set.insert("HOME".to_owned(), home.display().to_string());
        let sandbox = backend.open(policy).await;
        let run = Run::builder(tools).sandbox("default", sandbox.clone()).max_output(0).build().unwrap();
        Bench { run, sandbox, folder, _temporary: temporary }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let result = self.run.call(ToolCall::new("1", tool, arguments)).await.unwrap();
        self.keeps_its_promise(tool, &result);
        result
    }

    /// What a tool gives back is what its output schema says, and data has one.
    fn keeps_its_promise(&self, tool: &str, result: &ToolResult) {
        let specs = self.run.dispatch().specs();
        let schema =
            specs.iter().find(|spec| *spec.name == *tool).and_then(|spec| spec.output_schema.clone());
        if result.error.is_some() {
            return;
        }
        let value = value_of(result);
        let Some(schema) = schema else {
            let is_data = matches!(result.content.as_slice(), [Content::Json { .. }]) && !value.is_string();
            assert!(!is_data || tool == "read_file", "{tool} has no output schema for {value}");
            return;
        };
        let problems = Schema::compile_any(&schema).unwrap().problems(&value);
        assert!(problems.is_empty(), "{tool}: {problems:?} in {value}");
    }

    /// The text of a call that works.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments.clone()).await;
        assert!(result.error.is_none(), "{tool} {arguments}: {:?}", result.error);
        result.to_text()
    }

    /// The value of a call that works.
    pub(crate) async fn value(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone()).await;
        assert!(result.error.is_none(), "{tool} {arguments}: {:?}", result.error);
        value_of(&result)
    }

    /// The kind and message of a call that fails.
    pub(crate) async fn error(&self, tool: &str, arguments: Value) -> (ErrorKind, String) {
        let result = self.call(tool, arguments.clone()).await;
        let error = result.error.unwrap_or_else(|| panic!("{tool} {arguments} worked"));
        (error.kind, error.message)
    }

    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&path, open).unwrap();
        let mut folder = path.parent();
        while let Some(path) = folder.filter(|path| *path != self.folder) {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
            folder = path.parent();
        }
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.join(path)).unwrap()
    }
}

/// What a program gets from a result.
pub(crate) fn value_of(result: &ToolResult) -> Value {
    match (&result.structured, result.content.as_slice()) {
        (Some(value), _) => value.clone(),
        (None, []) => Value::Null,
        (None, [toolwright_core::Content::Json { value }]) => value.clone(),
        _ => Value::String(result.to_text()),
    }
}
