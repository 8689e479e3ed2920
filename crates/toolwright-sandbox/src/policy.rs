//! What a sandbox lets through, as data. Backends enforce it; nothing here touches the machine.
//!
//! A policy says what is open. Everything else is closed, an unknown word is an error, and a default never
//! opens.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolwright_core::{ErrorKind, ToolError};
use toolwright_effects::path_text as path;
use toolwright_net::HostRules;

/// System folders that programs need; those that exist are shown read-only.
pub const SYSTEM: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
];

/// Places that hold secrets; they are shown empty. Those that begin with `~/` are in the home folders of the
/// machine, and are masked wherever a folder that is shown holds them, unless the policy shows them by their
/// own name.
pub const MASKED: [&str; 82] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/docker",
    "/etc/kubernetes",
    // Our own: tokens of MCP servers, recorded runs.
    "~/.config/toolwright",
    "~/.local/share/toolwright",
    // Keys and passwords.
    "~/.ssh",
    "~/.gnupg",
    "~/.pki",
    "~/.netrc",
    "~/.authinfo",
    "~/.authinfo.gpg",
    "~/.pgpass",
    "~/.my.cnf",
    "~/.vault-token",
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.local/share/kwalletd",
    "~/.config/sops",
    "~/.config/op",
    "~/.config/keepassxc",
    // Clouds and clusters.
    "~/.aws",
    "~/.azure",
    "~/.config/gcloud",
    "~/.config/doctl",
    "~/.config/hcloud",
    "~/.config/rclone",
    "~/.boto",
    "~/.s3cfg",
    "~/.oci",
    "~/.fly",
    "~/.kube",
    "~/.docker/config.json",
    "~/.config/containers/auth.json",
    "~/.terraformrc",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.pulumi/credentials.json",
    // Where code and packages are kept.
    "~/.git-credentials",
    "~/.config/git/credentials",
    "~/.config/gh",
    "~/.config/glab-cli",
    "~/.config/hub",
    "~/.npmrc",
    "~/.yarnrc.yml",
    "~/.pypirc",
    "~/.config/pypoetry/auth.toml",
    "~/.cargo/credentials",
    "~/.cargo/credentials.toml",
    "~/.gem/credentials",
    "~/.m2/settings.xml",
    "~/.gradle/gradle.properties",
    "~/.composer/auth.json",
    "~/.config/composer/auth.json",
    // Models and the programs that use them.
    "~/.claude.json",
    "~/.claude/.credentials.json",
    "~/.codex/auth.json",
    "~/.gemini",
    "~/.config/github-copilot",
    "~/.cache/huggingface/token",
    // Browsers and mail: cookies are as good as passwords.
    "~/.mozilla",
    "~/.thunderbird",
    "~/.config/google-chrome",
    "~/.config/chromium",
    "~/.config/microsoft-edge",
    "~/.config/BraveSoftware",
    "~/.config/vivaldi",
    "~/.config/opera",
    "~/snap/firefox",
    "~/snap/chromium",
    "~/.var/app",
    // What was typed, passwords among it.
    "~/.bash_history",
    "~/.zsh_history",
    "~/.local/share/fish/fish_history",
    "~/.python_history",
    "~/.psql_history",
    "~/.mysql_history",
];

/// Files of a workspace that other programs on the host run or obey; they stay as they are, even when absent.
///
/// Of a repository that is everything: beside its hooks and settings, git obeys `commondir`,
/// `config.worktree` and the settings of submodules and worktrees. With it go the repository that a `.git`
/// file leads to, the `.git` of submodules, hooks that `core.hooksPath` names, settings that are included and
/// programs that settings name, where these are in a folder that can be written.
///
/// A folder without a repository in `.git` is taken for one itself, and its `config` obeyed, once there are
/// `HEAD`, `objects` and `refs` in it. `HEAD` stands for the one of them that is guarded in such folders:
/// `refs`, if it is not there.
///
/// Those that begin with `~/` are in the home folders of the machine, and are protected wherever they could
/// be written.
pub const PROTECTED: [&str; 44] = [
    ".git/",
    "HEAD",
    ".gitconfig",
    ".gitmodules",
    // Shells, where the workspace is a home folder, and what follows them into every folder.
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".zshenv",
    ".zprofile",
    ".zshrc",
    ".zlogin",
    ".envrc",
    ".ssh/",
    // Editors and the clients of tools.
    ".vscode/",
    ".idea/",
    ".zed/",
    ".cursor/",
    ".claude/",
    ".codex/",
    ".agents/",
    ".gemini/",
    ".kiro/",
    ".roo/",
    "opencode.json",
    ".aider.conf.yml",
    ".ripgreprc",
    ".mcp.json",
    ".toolwright/",
    "toolwright.yaml",
    "tools.lock",
    // In a home folder: our own, what runs at login, and what is run by its name.
    "~/.config/toolwright/",
    "~/.local/share/toolwright/",
    "~/.claude.json",
    "~/.gemini/",
    "~/.bash_aliases",
    "~/.bash_logout",
    "~/.zlogout",
    "~/.config/fish/",
    "~/.config/git/",
    "~/.config/environment.d/",
    "~/.config/systemd/",
    "~/.config/autostart/",
    "~/.local/bin/",
];

/// What a sandbox lets through.
///
/// ```
/// use toolwright_sandbox::{Network, SandboxPolicy};
///
/// let policy: SandboxPolicy = serde_json::from_str(r#"{"workspace": "/srv/app", "limits": {"processes": 64}}"#).unwrap();
/// assert_eq!(policy.network, Network::Off);
/// assert!(serde_json::from_str::<SandboxPolicy>(r#"{"network": "open"}"#).is_err());
/// assert!(serde_json::from_str::<SandboxPolicy>(r#"{"netwrok": "off"}"#).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxPolicy {
    /// The folder to work in, writable, shown at its own path. Without one there is a private one, as long as
    /// the sandbox.
    #[serde(with = "path::maybe", skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// Show the workspace read-only: looking is all that can be done to it.
    pub read_only: bool,
    /// System folders to show read-only; missing ones are left out.
    #[serde(with = "path::many")]
    pub system: Vec<PathBuf>,
    /// More files and folders to show read-only; a missing one is an error.
    #[serde(with = "path::many")]
    pub read: Vec<PathBuf>,
    /// More folders to show writable; a missing one is an error.
    #[serde(with = "path::many")]
    pub write: Vec<PathBuf>,
    /// Files and folders to show empty. Relative ones belong to the workspace; those that begin with `~/` to
    /// the home folders of the machine, where they are masked unless `read`, `write` or `workspace` names
    /// them.
    #[serde(with = "path::many")]
    pub mask: Vec<PathBuf>,
    /// Files and folders (those with a final `/`) that cannot be changed, or made when absent, in the
    /// workspace and in the folders of `write`; those that begin with `~/`, in the home folders of the
    /// machine.
    #[serde(with = "path::many")]
    pub protect: Vec<PathBuf>,
    /// The image of a container, for the backends that have containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What can be reached over the network.
    pub network: Network,
    /// What programs find in their environment.
    pub env: EnvPolicy,
    /// How much may be used.
    pub limits: SandboxLimits,
    /// Protections without which nothing runs.
    pub require: Vec<Layer>,
    /// When changes to the workspace and the folders of `write` become real.
    pub changes: Changes,
}

impl Default for SandboxPolicy {
    fn default() -> Self {
        SandboxPolicy {
            workspace: None,
            read_only: false,
            system: SYSTEM.iter().map(PathBuf::from).collect(),
            read: Vec::new(),
            write: Vec::new(),
            mask: MASKED.iter().map(PathBuf::from).collect(),
            protect: PROTECTED.iter().map(PathBuf::from).collect(),
            image: None,
            network: Network::Off,
            env: EnvPolicy::default(),
            limits: SandboxLimits::default(),
            require: Layer::DEFAULT_REQUIRED.to_vec(),
            changes: Changes::Live,
        }
    }
}

/// When changes to the folders that can be written become real.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Changes {
    /// At once: commands write to the folders themselves.
    #[default]
    Live,
    /// At the end of each call, or of each interaction with a process that lives longer. Until then commands
    /// write to a layer of their own. What changed outside meanwhile, and what is protected, stays as it is.
    Commit,
    /// As with `commit`, once the person who is asked about the changes of a call has agreed. Where nobody
    /// can be asked, they are set aside.
    Ask,
    /// Never: each call finds the folders as they are outside, and what it changes is dropped at its end.
    Discard,
}

impl SandboxPolicy {
    /// The default policy with a private, empty workspace that nothing needs protecting in.
    pub fn private() -> Self {
        SandboxPolicy { protect: Vec::new(), ..SandboxPolicy::default() }
    }

    /// The default policy for work in `folder`.
    pub fn for_workspace(folder: impl Into<PathBuf>) -> Self {
        SandboxPolicy { workspace: Some(folder.into()), ..SandboxPolicy::default() }
    }

    /// Whether there is something to stage, and it is to be staged.
    pub(crate) fn is_staged(&self) -> bool {
        let writes = (self.workspace.is_some() && !self.read_only) || !self.write.is_empty();
        writes && self.changes != Changes::Live
    }

    /// Checks everything that can be checked without looking at the machine.
    pub fn check(&self) -> Result<(), ToolError> {
        for path in self.workspace.iter().chain(&self.write) {
            absolute(path)?;
            if path.parent().is_none() || self.system.iter().any(|system| system.starts_with(path)) {
                return Err(refused(format!("`{}` is too much to make writable", path.display())));
            }
        }
        for path in self.system.iter().chain(&self.read) {
            absolute(path)?;
            if path.parent().is_none() {
                return Err(refused("the root folder cannot be shown as a whole"));
            }
        }
        for path in self.workspace.iter().chain(&self.write).chain(&self.read) {
            if is_of_the_machine(path) {
                return Err(refused(format!("`{}` of the machine cannot be shown", path.display())));
            }
        }
        for path in &self.protect {
            let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
            if !plain || path.as_os_str().is_empty() {
                return Err(refused(format!(
                    "`{}` must be a plain path inside the workspace to be protected",
                    path.display()
                )));
            }
        }
        for name in self.env.set.keys().chain(&self.env.pass) {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(refused(format!("`{}` is not the name of a variable", name.escape_debug())));
            }
        }
        self.limits.check()?;
        match &self.network {
            Network::Off | Network::Loopback => Ok(()),
            Network::Allow(hosts) => HostRules::parse(hosts).map(drop).map_err(|why| {
                refused(format!("not a rule for hosts: {why}"))
                    .hint("write `example.com`, `*.example.com`, `example.com:8443`, an address, or `example.com:22/raw`")
            }),
        }
    }
}

/// Whether a path leads to the kernel or to devices. A sandbox has folders of these names of its own.
pub(crate) fn is_of_the_machine(path: &Path) -> bool {
    let below_shared_memory = path.starts_with("/dev/shm") && path != Path::new("/dev/shm");
    ["/proc", "/sys", "/dev"].iter().any(|own| path.starts_with(own)) && !below_shared_memory
}

fn absolute(path: &Path) -> Result<(), ToolError> {
    let plain = path.components().all(|part| !matches!(part, Component::ParentDir));
    if path.is_absolute() && plain {
        return Ok(());
    }
    Err(refused(format!("`{}` must be an absolute path without `..`", path.display())))
}

fn refused(message: impl Into<String>) -> ToolError {
    ToolError::of(ErrorKind::SandboxUnavailable, message)
}

/// What can be reached over the network.
///
/// Written as `off`, `loopback`, or a list of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "NetworkForm", into = "NetworkForm")]
pub enum Network {
    /// Nothing: no interface, and no sockets but local ones.
    #[default]
    Off,
    /// Only what listens inside the same sandbox, on a loopback interface of its own.
    Loopback,
    /// Beside that the named hosts, through a filtering proxy: `example.com`, `*.example.com`,
    /// `example.com:8443`, an address. Without a port, 80 and 443 are open. TLS and HTTP pass; `/raw` at the
    /// end (`db.example.com:5432/raw`) opens every protocol. A name that leads to a private address, or to
    /// one of this machine, is refused unless the address is named too.
    Allow(Vec<String>),
}

/// The forms in which a policy file writes a network.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "`off`, `loopback`, or a list of hosts")]
enum NetworkForm {
    Word(Word),
    /// YAML reads `off` as false.
    No(No),
    Hosts(Vec<String>),
    Allow(Allow),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
struct No;

impl TryFrom<bool> for No {
    type Error = &'static str;

    fn try_from(open: bool) -> Result<Self, Self::Error> {
        if open { Err("say which hosts") } else { Ok(No) }
    }
}

impl From<No> for bool {
    fn from(_: No) -> Self {
        false
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Off,
    Loopback,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allow {
    allow: Vec<String>,
}

impl From<NetworkForm> for Network {
    fn from(form: NetworkForm) -> Self {
        match form {
            NetworkForm::Word(Word::Off) | NetworkForm::No(No) => Network::Off,
            NetworkForm::Word(Word::Loopback) => Network::Loopback,
            NetworkForm::Hosts(hosts) | NetworkForm::Allow(Allow { allow: hosts }) => Network::Allow(hosts),
        }
    }
}

impl From<Network> for NetworkForm {
    fn from(network: Network) -> Self {
        match network {
            Network::Off => NetworkForm::Word(Word::Off),
            Network::Loopback => NetworkForm::Word(Word::Loopback),
            Network::Allow(hosts) => NetworkForm::Hosts(hosts),
        }
    }
}

/// What programs find in their environment. The caller's own variables are not inherited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvPolicy {
    /// Names of the caller's variables to pass on.
    pub pass: Vec<String>,
    /// Variables to set.
    pub set: BTreeMap<String, String>,
}

impl EnvPolicy {
    /// Whether it says where programs are looked for.
    pub(crate) fn sets_search_path(&self) -> bool {
        self.set.contains_key("PATH") || self.pass.iter().any(|name| name == "PATH")
    }
}

/// How much a sandbox may use. `None` means no limit of that kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxLimits {
    /// Bytes of memory for the sandbox (where cgroups are writable) or else for each process.
    pub memory: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Seconds of processor time for each process.
    pub cpu_seconds: Option<u64>,
    /// Bytes in one file.
    pub file_size: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Bytes in each of the private folders (`/tmp`, the home folder, `/dev/shm`, a private workspace). Their
    /// files are counted too: one for each 4096 bytes, at least 1024.
    pub scratch: u64,
    /// Seconds a command may take when its caller does not say; also the most a caller may ask for.
    pub timeout_seconds: Option<u64>,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        SandboxLimits {
            memory: Some(4 << 30),
            processes: Some(512),
            cpu_seconds: None,
            file_size: Some(8 << 30),
            open_files: Some(4096),
            scratch: 512 << 20,
            timeout_seconds: None,
        }
    }
}

impl SandboxLimits {
    /// How many files a private folder may hold.
    pub(crate) fn scratch_files(&self) -> u64 {
        (self.scratch / 4096).clamp(1024, 1 << 20)
    }

    /// Refuses limits under which a sandbox could not even be built, or a command not begin.
    fn check(&self) -> Result<(), ToolError> {
        for (name, value, least) in [
            ("memory", self.memory, 16 << 20),
            ("processes", self.processes, 4),
            ("cpu_seconds", self.cpu_seconds, 1),
            ("open_files", self.open_files, 16),
            // To the kernel, 0 means no limit here.
            ("scratch", Some(self.scratch), 4096),
            ("timeout_seconds", self.timeout_seconds, 1),
        ] {
            if let Some(value) = value.filter(|value| *value < least) {
                return Err(refused(format!("the limit `{name}` is {value}, and must be at least {least}")));
            }
        }
        Ok(())
    }
}

/// One protection. Results list those that were on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// A user namespace: rights inside mean nothing outside.
    UserNamespace,
    /// A view of the file system of its own.
    MountNamespace,
    /// A process tree of its own, which dies as a whole.
    PidNamespace,
    /// A network without a way out.
    NetNamespace,
    /// Shared memory and message queues of its own.
    IpcNamespace,
    /// A host name of its own.
    UtsNamespace,
    /// A view of control groups of its own.
    CgroupNamespace,
    /// Outside, the processes belong to a user that is not root.
    OrdinaryUser,
    /// No capability can be held or gained.
    NoCapabilities,
    /// `exec` never adds rights.
    NoNewPrivileges,
    /// A filter of system calls.
    Seccomp,
    /// A second, independent lock on files, sockets and signals.
    Landlock,
    /// SandboxLimits of each process.
    ProcessLimits,
    /// A limit on the memory of the whole sandbox.
    MemoryCgroup,
    /// A limit on the processes of the whole sandbox.
    PidsCgroup,
}

impl Layer {
    /// Every layer.
    pub const ALL: [Layer; 15] = [
        Layer::UserNamespace,
        Layer::MountNamespace,
        Layer::PidNamespace,
        Layer::NetNamespace,
        Layer::IpcNamespace,
        Layer::UtsNamespace,
        Layer::CgroupNamespace,
        Layer::OrdinaryUser,
        Layer::NoCapabilities,
        Layer::NoNewPrivileges,
        Layer::Seccomp,
        Layer::Landlock,
        Layer::ProcessLimits,
        Layer::MemoryCgroup,
        Layer::PidsCgroup,
    ];

    /// What a policy requires when it does not say. Landlock needs a recent kernel and cgroups need a
    /// delegated or root owned tree, so they are used where they are and not insisted on.
    pub const DEFAULT_REQUIRED: [Layer; 10] = [
        Layer::UserNamespace,
        Layer::MountNamespace,
        Layer::PidNamespace,
        Layer::NetNamespace,
        Layer::IpcNamespace,
        Layer::UtsNamespace,
        Layer::NoCapabilities,
        Layer::NoNewPrivileges,
        Layer::Seccomp,
        Layer::ProcessLimits,
    ];

    /// The wire name, for example `net_namespace`.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::UserNamespace => "user_namespace",
            Layer::MountNamespace => "mount_namespace",
            Layer::PidNamespace => "pid_namespace",
            Layer::NetNamespace => "net_namespace",
            Layer::IpcNamespace => "ipc_namespace",
            Layer::UtsNamespace => "uts_namespace",
            Layer::CgroupNamespace => "cgroup_namespace",
            Layer::OrdinaryUser => "ordinary_user",
            Layer::NoCapabilities => "no_capabilities",
            Layer::NoNewPrivileges => "no_new_privileges",
            Layer::Seccomp => "seccomp",
            Layer::Landlock => "landlock",
            Layer::ProcessLimits => "process_limits",
            Layer::MemoryCgroup => "memory_cgroup",
            Layer::PidsCgroup => "pids_cgroup",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(json: &str) -> Result<SandboxPolicy, String> {
        serde_json::from_str::<SandboxPolicy>(json).map_err(|error| error.to_string())
    }

    #[test]
    fn unknown_words_and_wrong_types_do_not_load() {
        for json in [
            r#"{"network": ""}"#,
            r#"{"network": "on"}"#,
            r#"{"network": null}"#,
            r#"{"network": true}"#,
            r#"{"network": {"allow": "example.com"}}"#,
            r#"{"netwrok": "off"}"#,
            r#"{"limits": {"memroy": 1}}"#,
            r#"{"limits": {"memory": "1G"}}"#,
            r#"{"limits": {"memory": -1}}"#,
            r#"{"env": {"pass": "PATH"}}"#,
            r#"{"require": ["magic"]}"#,
            r#"{"read": "/srv"}"#,
            r#""off""#,
        ] {
            assert!(load(json).is_err(), "{json} loaded");
        }
    }

    #[test]
    fn an_absent_word_is_the_closed_one() {
        let policy = load("{}").unwrap();
        assert_eq!(policy, SandboxPolicy::default());
        assert_eq!(policy.network, Network::Off);
        policy.check().unwrap();
    }

    #[test]
    fn what_cannot_be_enforced_is_refused() {
        let with = |change: fn(&mut SandboxPolicy)| {
            let mut policy = SandboxPolicy::default();
            change(&mut policy);
            policy.check().unwrap_err().kind()
        };
        let refusals = [
            with(|policy| policy.network = Network::Allow(vec!["*".into()])),
            with(|policy| policy.network = Network::Allow(vec!["https://example.com".into()])),
            with(|policy| policy.network = Network::Allow(vec![])),
            with(|policy| policy.workspace = Some("/".into())),
            with(|policy| policy.workspace = Some("relative".into())),
            with(|policy| policy.write = vec!["/usr".into()]),
            with(|policy| policy.write = vec!["/dev".into()]),
            with(|policy| policy.write = vec!["/dev/shm".into()]),
            with(|policy| policy.read = vec!["/proc/1".into()]),
            with(|policy| policy.workspace = Some("/sys/fs/cgroup".into())),
            with(|policy| policy.read = vec!["/".into()]),
            with(|policy| policy.read = vec!["/srv/../root".into()]),
            with(|policy| policy.protect = vec!["../outside".into()]),
            with(|policy| policy.protect = vec!["/etc".into()]),
            with(|policy| policy.env.pass = vec!["A=B".into()]),
            with(|policy| policy.limits.memory = Some(100)),
            with(|policy| policy.limits.open_files = Some(5)),
            with(|policy| policy.limits.processes = Some(0)),
            with(|policy| policy.limits.scratch = 0),
            with(|policy| policy.limits.timeout_seconds = Some(0)),
        ];
        assert!(refusals.iter().all(|kind| *kind == ErrorKind::SandboxUnavailable));
    }

    #[test]
    fn a_network_is_a_word_or_a_list() {
        let hosts = Network::Allow(vec!["example.com".into()]);
        for json in [r#"{"network": ["example.com"]}"#, r#"{"network": {"allow": ["example.com"]}}"#] {
            let policy = load(json).unwrap();
            assert_eq!(policy.network, hosts);
            policy.check().unwrap();
        }
        for (network, json) in
            [(Network::Off, r#""off""#), (Network::Loopback, r#""loopback""#), (hosts, r#"["example.com"]"#)]
        {
            assert_eq!(serde_json::to_string(&network).unwrap(), json);
        }
    }

    #[test]
    fn layers_have_the_same_name_in_json_and_in_text() {
        for layer in Layer::ALL {
            assert_eq!(serde_json::to_value(layer).unwrap(), layer.as_str());
        }
    }
}
