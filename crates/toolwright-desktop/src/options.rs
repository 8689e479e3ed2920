//! How the desktop tools are set up, and the desktop that a run keeps.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use toolwright_core::{ErrorKind, ToolContext, ToolError};

use crate::desktop::Desktop;
use crate::scale::Size;

/// The longest a call may take, as in Inspect.
const TIMEOUT: Duration = Duration::from_secs(180);
/// The size of a display, which no vendor scales.
const SIZE: Size = Size { width: 1280, height: 800 };
/// The sides that a display may have.
const SIDES: std::ops::RangeInclusive<u32> = 320..=4096;

/// How desktop tools are set up.
///
/// ```
/// use toolwright_desktop::{DesktopOptions, desktop_tools};
///
/// let options = DesktopOptions::new().size(1024, 768)?.start("xterm");
/// assert!(desktop_tools(&options)?.get("computer").is_some());
/// assert!(DesktopOptions::new().size(0, 768).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct DesktopOptions {
    sandbox: Option<Arc<str>>,
    display: Option<Arc<str>>,
    size: Size,
    start: Vec<String>,
    max_screenshots: Option<usize>,
    timeout: Option<Duration>,
}

impl Default for DesktopOptions {
    fn default() -> Self {
        DesktopOptions {
            sandbox: None,
            display: None,
            size: SIZE,
            start: Vec::new(),
            max_screenshots: Some(1),
            timeout: Some(TIMEOUT),
        }
    }
}

impl DesktopOptions {
    /// The run's default sandbox, a display of 1280 by 800 pixels that is started on first use, one
    /// screenshot kept, and 180 seconds for a call.
    pub fn new() -> Self {
        DesktopOptions::default()
    }

    /// Works in the sandbox of that name.
    pub fn in_sandbox(mut self, name: impl Into<Arc<str>>) -> Self {
        self.sandbox = Some(name.into());
        self
    }

    /// Uses a display that is there already, such as `:0`, in place of starting one.
    pub fn display(mut self, display: impl Into<Arc<str>>) -> Self {
        self.display = Some(display.into());
        self
    }

    /// The size of the display that is started, in pixels; each side may have 320 to 4096.
    pub fn size(mut self, width: u32, height: u32) -> Result<Self, ToolError> {
        if !SIDES.contains(&width) || !SIDES.contains(&height) {
            let (least, most) = (SIDES.start(), SIDES.end());
            return Err(ToolError::invalid(format!(
                "a display of {width} x {height} pixels is not possible: each side may have {least} to {most}"
            )));
        }
        self.size = Size { width, height };
        Ok(self)
    }

    /// Starts a program with the desktop: a shell command.
    pub fn start(mut self, command: impl Into<String>) -> Self {
        self.start.push(command.into());
        self
    }

    /// How many of the last screenshots a model keeps; older ones become a line. `None` keeps all.
    pub fn max_screenshots(mut self, count: impl Into<Option<usize>>) -> Self {
        self.max_screenshots = count.into();
        self
    }

    /// The longest a call may take; `None` for no bound.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// The options a file gives as a tool's `config`: `sandbox`, `display`, `size` as `[width, height]`,
    /// `start` (a list of shell commands), `max_screenshots` and `timeout` in seconds (both may be null).
    ///
    /// ```
    /// use serde_json::json;
    /// use toolwright_desktop::DesktopOptions;
    ///
    /// assert!(DesktopOptions::from_config(&json!({"size": [1024, 768], "start": ["mousepad"]})).is_ok());
    /// assert!(DesktopOptions::from_config(&json!({"max_screenshot": 1})).is_err());
    /// ```
    pub fn from_config(config: &Value) -> Result<Self, ToolError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Config {
            sandbox: Option<Arc<str>>,
            display: Option<Arc<str>>,
            size: Option<[u32; 2]>,
            #[serde(default)]
            start: Vec<String>,
            #[serde(default = "one")]
            max_screenshots: Option<usize>,
            #[serde(default = "usual_timeout")]
            timeout: Option<f64>,
            #[serde(rename = "require_confirmation")]
            _require_confirmation: Option<bool>,
        }
        fn one() -> Option<usize> {
            Some(1)
        }
        fn usual_timeout() -> Option<f64> {
            Some(TIMEOUT.as_secs_f64())
        }
        if config.is_null() {
            return Ok(DesktopOptions::new());
        }
        let config: Config = serde_json::from_value(config.clone())
            .map_err(|error| ToolError::invalid(format!("`config`: {error}")))?;
        let timeout = config.timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.ok().filter(|time| *time != Some(Duration::ZERO)).ok_or_else(|| {
            ToolError::invalid("`config`: `timeout` must be a number of seconds above zero, or null")
        })?;
        let [width, height] = config.size.unwrap_or([SIZE.width, SIZE.height]);
        let options = DesktopOptions {
            sandbox: config.sandbox,
            display: config.display,
            start: config.start,
            max_screenshots: config.max_screenshots,
            timeout,
            size: SIZE,
        };
        options.size(width, height)
    }

    pub(crate) fn screenshots_kept(&self) -> Option<usize> {
        self.max_screenshots
    }

    pub(crate) fn call_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) fn screen(&self) -> Size {
        self.size
    }

    /// Whether the screen has the size that is set here. One that is given may have another.
    pub(crate) fn knows_size(&self) -> bool {
        self.display.is_none()
    }

    /// The desktop of these options in the run of a call, for one user at a time. It is started on first use,
    /// and again after it ended.
    pub(crate) async fn enter(&self, context: &ToolContext) -> Result<OpenDesktop, ToolError> {
        let name = self.sandbox.as_deref().unwrap_or_default();
        let key = format!("{name}\n{}", self.display.as_deref().unwrap_or_default());
        let slots = context.store::<DesktopSlots>().read(|slots| slots.open.clone());
        let slot = slots.lock().await.entry(key).or_default().clone();
        let mut open = slot.lock_owned().await;
        if open.as_ref().is_some_and(Desktop::is_gone) {
            *open = None;
        }
        if open.is_none() {
            let sandbox = match &self.sandbox {
                Some(name) => context.sandbox_named(name)?,
                None => context.sandbox()?,
            };
            let mut desktop = Desktop::start(sandbox, self.display.as_deref(), self.size).await?;
            for command in &self.start {
                desktop.start_program(command).await?;
            }
            *open = Some(desktop);
        }
        Ok(OpenDesktop { slot: open })
    }
}

type DesktopSlot = Arc<Mutex<Option<Desktop>>>;

/// The desktops of a run. They are not saved with it.
#[derive(Default, Serialize, Deserialize)]
struct DesktopSlots {
    #[serde(skip)]
    open: Arc<Mutex<HashMap<String, DesktopSlot>>>,
}

/// A desktop in use.
pub(crate) struct OpenDesktop {
    slot: OwnedMutexGuard<Option<Desktop>>,
}

impl OpenDesktop {
    pub(crate) fn get(&mut self) -> Result<&mut Desktop, ToolError> {
        self.slot.as_mut().ok_or_else(|| ToolError::of(ErrorKind::SandboxUnavailable, "the desktop is gone"))
    }
}
