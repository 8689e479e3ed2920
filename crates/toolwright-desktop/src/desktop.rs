//! A desktop of a run: its display, the programs on it, and what was shown of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use image::RgbImage;
use tokio::time::{Instant, timeout};
use toolwright_core::{
    Content, DynProcessHandle, DynSandbox, ExecRequest, SpawnRequest, ToolError, ToolOutput,
};

use crate::accessibility::Accessibility;
use crate::display::{Display, SettleTimes};
use crate::launch::{DesktopProcess, DesktopSession, LaunchedDisplay, keep_tail, launch};
use crate::picture::{png, resized};
use crate::scale::{Point, Scale, Size};
use crate::x11::lock;

/// The most programs that are kept running.
const MAX_PROGRAMS: usize = 50;
/// How long a program that was started may take to show its window.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a window is waited for when the program has ended at once: it may have passed it on to another.
const ENDED_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a window manager may take to start.
const MANAGER_TIMEOUT: Duration = Duration::from_secs(3);
/// How often new windows are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How long a new window may take to be drawn.
const WINDOW: SettleTimes = SettleTimes {
    first: Duration::from_secs(1),
    quiet: Duration::from_millis(300),
    longest: Duration::from_secs(5),
};

/// An open desktop. Dropping it ends the display and its programs.
pub(crate) struct Desktop {
    pub(crate) display: Display,
    pub(crate) session: DesktopSession,
    pub(crate) sandbox: Arc<DynSandbox>,
    /// The connection to the programs' descriptions of themselves, once it was used.
    pub(crate) accessibility: Option<Accessibility>,
    programs: Vec<Program>,
    /// The last picture that was shown.
    last: Option<RgbImage>,
    _process: DesktopProcess,
}

/// A program that was started.
struct Program {
    handle: Box<DynProcessHandle>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
}

impl Desktop {
    /// Starts a display of that size, or opens the one that is given.
    pub(crate) async fn start(
        sandbox: Arc<DynSandbox>,
        given: Option<&str>,
        size: Size,
    ) -> Result<Desktop, ToolError> {
        let launched = launch(&*sandbox, given, size).await?;
        let LaunchedDisplay { reader, writer, cookie, session, process } = launched;
        let display = match Display::open(reader, writer, &cookie).await {
            Ok(display) => display,
            Err(error) => {
                let why = process.failure().await;
                return Err(why.hint(error.to_string()));
            }
        };
        if !session.manager.is_empty() {
            // Windows that come before their manager are placed otherwise.
            let until = Instant::now() + MANAGER_TIMEOUT;
            while !display.is_managed().await? && Instant::now() < until {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }
        Ok(Desktop {
            display,
            session,
            sandbox,
            accessibility: None,
            programs: Vec::new(),
            last: None,
            _process: process,
        })
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.display.x.is_closed()
    }

    /// Starts a program, and waits for its window. False when none came.
    pub(crate) async fn start_program(&mut self, command: &str) -> Result<bool, ToolError> {
        self.forget_ended().await;
        if self.programs.len() >= MAX_PROGRAMS {
            return Err(ToolError::new(format!("{MAX_PROGRAMS} programs are running, which is the most")));
        }
        let before = self.display.windows().await?;
        let request = self.session.command(ExecRequest::new(["sh", "-c", command]));
        let mut started = self.sandbox.spawn(SpawnRequest::piped(request)).await?;
        drop(started.stdin.take());
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        for stream in [started.stdout.take(), started.stderr.take()].into_iter().flatten() {
            tokio::spawn(keep_tail(stream, stderr.clone()));
        }
        let program = Program { handle: started.handle, stderr };
        let mut until = Instant::now() + WINDOW_TIMEOUT;
        let mut ended = false;
        let mut drawn = self.display.drawn().await?;
        while self.display.windows().await?.is_subset(&before) && Instant::now() < until {
            drawn = self.display.drawn().await?;
            match timeout(LOOK_INTERVAL, program.handle.wait()).await {
                Err(_) => {}
                Ok(_) if ended => tokio::time::sleep(LOOK_INTERVAL).await,
                Ok(Ok(0)) => (ended, until) = (true, until.min(Instant::now() + ENDED_TIMEOUT)),
                Ok(code) => {
                    let code = code?;
                    // What it wrote last may still be on its way.
                    tokio::time::sleep(LOOK_INTERVAL).await;
                    return Err(program.failure(code));
                }
            }
        }
        self.display.settle(Some(drawn), WINDOW).await?;
        self.programs.push(program);
        Ok(!self.display.windows().await?.is_subset(&before))
    }

    async fn forget_ended(&mut self) {
        let mut running = Vec::new();
        for program in std::mem::take(&mut self.programs) {
            if timeout(Duration::ZERO, program.handle.wait()).await.is_err() {
                running.push(program);
            }
        }
        self.programs = running;
    }

    /// The conversion between the screen and the pictures of it.
    pub(crate) async fn scale(&self) -> Result<Scale, ToolError> {
        Ok(Scale::of_screen(self.display.size().await?))
    }

    /// The whole screen.
    pub(crate) async fn screenshot(&mut self) -> Result<ToolOutput, ToolError> {
        let scale = self.scale().await?;
        let picture = self.display.picture(Point { x: 0, y: 0 }, scale.screen).await?;
        let same = self.last.as_ref() == Some(&picture);
        let bytes = encode(picture.clone(), scale.picture).await?;
        self.last = Some(picture);
        let image = Content::image("image/png", &bytes);
        Ok(external(match same {
            true => ToolOutput::blocks([Content::text("(the screen did not change)"), image]),
            false => ToolOutput::block(image),
        }))
    }

    /// A part of the screen, as large as the whole one.
    pub(crate) async fn zoom(&self, region: [i32; 4]) -> Result<ToolOutput, ToolError> {
        let scale = self.scale().await?;
        let (corner, size) = scale.region(region)?;
        let picture = self.display.picture(corner, size).await?;
        let bytes = encode(picture, crate::scale::enlarged(size, scale.picture)).await?;
        Ok(external(ToolOutput::block(Content::image("image/png", &bytes))))
    }
}

/// A picture of some size as a file, made where that holds nothing up.
async fn encode(picture: RgbImage, size: Size) -> Result<Vec<u8>, ToolError> {
    let made = tokio::task::spawn_blocking(move || png(&resized(picture, size))).await;
    made.map_err(|_| ToolError::new("the picture could not be made"))?
}

/// What a screen shows was written by others; policies can tell.
pub(crate) fn external(mut output: ToolOutput) -> ToolOutput {
    output.extras.insert("trust".to_owned(), "external".into());
    output.extras.insert("origin".to_owned(), "desktop".into());
    output
}

impl Program {
    fn failure(&self, code: i32) -> ToolError {
        let bytes: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        let said = toolwright_core::text::visible(String::from_utf8_lossy(&bytes).trim());
        let error = ToolError::new(format!("the program ended with code {code}: {said}"));
        if code == 127 { error.hint("it is not installed in the sandbox") } else { error }
    }
}
