//! A display: its screen, its pointer and its buttons. What is pressed is released on every way out.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use image::RgbImage;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};
use toolwright_core::{ErrorKind, ToolError};
use x11rb_protocol::protocol::damage::{
    self, CreateRequest, QueryVersionRequest as DamageVersion, ReportLevel, SubtractRequest,
};
use x11rb_protocol::protocol::xfixes::{GetCursorImageRequest, QueryVersionRequest as XfixesVersion};
use x11rb_protocol::protocol::xproto::{
    EventMask, GetGeometryRequest, GetImageRequest, GetInputFocusRequest, GetWindowAttributesRequest,
    ImageFormat, ImageOrder, MapState, QueryPointerRequest, QueryTreeRequest, WindowClass,
};
use x11rb_protocol::protocol::xtest::FakeInputRequest;

use crate::keyboard::Keyboard;
use crate::picture::{Pointer, draw_pointer, from_x};
use crate::scale::{Point, Size};
use crate::x11::{XConnection, XError};

/// The most pixels of a screen.
pub(crate) const MAX_PIXELS: usize = 4096 * 4096;

/// The most windows that are looked at.
const MAX_WINDOWS: usize = 1000;

/// The least side of a window that counts.
const MIN_WINDOW: u16 = 16;

// The codes of events, as XTEST takes them.
const KEY_PRESS: u8 = 2;
const BUTTON_PRESS: u8 = 4;
const MOTION: u8 = 6;

/// An open display.
pub(crate) struct Display {
    pub(crate) x: XConnection,
    root: u32,
    xtest: u8,
    xfixes: Option<u8>,
    /// The opcode of the extension, and the number of our watch on the screen.
    damage: Option<(u8, u32)>,
    pub(crate) keyboard: Mutex<Keyboard>,
}

impl From<XError> for ToolError {
    fn from(error: XError) -> Self {
        let failed = ToolError::of(ErrorKind::SandboxUnavailable, error.to_string());
        failed.hint("the next call starts a new desktop")
    }
}

/// How long a screen is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettleTimes {
    /// Until the first thing is drawn.
    pub(crate) first: Duration,
    /// Without anything drawn.
    pub(crate) quiet: Duration,
    /// In all.
    pub(crate) longest: Duration,
}

/// A key or a button that is down, and is released when this is dropped.
pub(crate) struct PressedInput<'a> {
    display: &'a Display,
    released: u8,
    detail: u8,
}

impl Drop for PressedInput<'_> {
    fn drop(&mut self) {
        self.display.fake(self.released, self.detail, Point { x: 0, y: 0 });
    }
}

impl Display {
    /// Opens a display over the streams of its server.
    pub(crate) async fn open(
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
        cookie: &[u8],
    ) -> Result<Display, XError> {
        let x = XConnection::open(reader, writer, cookie).await?;
        let setup = &x.setup;
        let screen = setup.roots.first().ok_or_else(|| XError::Broken("it has no screen".to_owned()))?;
        let root = screen.root;
        let format = setup.pixmap_formats.iter().find(|format| format.depth == screen.root_depth);
        let usual = screen.root_depth >= 24
            && format.is_some_and(|format| format.bits_per_pixel == 32)
            && setup.image_byte_order == ImageOrder::LSB_FIRST;
        if !usual {
            return Err(XError::Broken(format!(
                "a screen of depth {} is not read; it must have 24 bits",
                screen.root_depth
            )));
        }
        let missing = || XError::Broken("it has no XTEST extension".to_owned());
        let (xtest, _) = x.extension("XTEST").await?.ok_or_else(missing)?;
        let mut xfixes = x.extension("XFIXES").await?.map(|(opcode, _)| opcode);
        if let Some(opcode) = xfixes {
            let version = XfixesVersion { client_major_version: 4, client_minor_version: 0 };
            xfixes = x.ask(version, opcode).await.is_ok().then_some(opcode);
        }
        let mut damage = None;
        if let (Some((opcode, first)), Some(_)) = (x.extension("DAMAGE").await?, xfixes) {
            let version = DamageVersion { client_major_version: 1, client_minor_version: 1 };
            if x.ask(version, opcode).await.is_ok() {
                let id = x.setup.resource_id_base;
                x.count_damage(first + damage::NOTIFY_EVENT);
                x.send(CreateRequest { damage: id, drawable: root, level: ReportLevel::NON_EMPTY }, opcode);
                damage = Some((opcode, id));
            }
        }
        let keyboard = Mutex::default();
        let display = Display { x, root, xtest, xfixes, damage, keyboard };
        display.size().await?;
        Ok(display)
    }

    /// The size of the screen now.
    pub(crate) async fn size(&self) -> Result<Size, XError> {
        let reply = self.x.ask(GetGeometryRequest { drawable: self.root }, 0).await?;
        let size = Size { width: reply.width.into(), height: reply.height.into() };
        match usize::from(reply.width) * usize::from(reply.height) {
            1..=MAX_PIXELS => Ok(size),
            _ => Err(XError::Broken(format!("a screen of {} x {}", size.width, size.height))),
        }
    }

    /// Where the pointer is, and the state of modifiers and buttons.
    pub(crate) async fn pointer(&self) -> Result<(Point, u16), XError> {
        let reply = self.x.ask(QueryPointerRequest { window: self.root }, 0).await?;
        Ok((Point { x: reply.root_x.into(), y: reply.root_y.into() }, reply.mask.into()))
    }

    /// The windows that can be seen, those of other programs below.
    pub(crate) async fn windows(&self) -> Result<HashSet<u32>, XError> {
        let tree = self.x.ask(QueryTreeRequest { window: self.root }, 0).await?;
        let mut seen = HashSet::new();
        for window in tree.children.into_iter().take(MAX_WINDOWS) {
            match self.is_visible(window).await {
                Ok(true) => drop(seen.insert(window)),
                // One that is gone by now is refused.
                Ok(false) | Err(XError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(seen)
    }

    /// Whether a window is mapped and large enough for people: programs keep small ones for themselves.
    async fn is_visible(&self, window: u32) -> Result<bool, XError> {
        let attributes = self.x.ask(GetWindowAttributesRequest { window }, 0).await?;
        if attributes.map_state != MapState::VIEWABLE || attributes.class != WindowClass::INPUT_OUTPUT {
            return Ok(false);
        }
        let size = self.x.ask(GetGeometryRequest { drawable: window }, 0).await?;
        Ok(size.width >= MIN_WINDOW && size.height >= MIN_WINDOW)
    }

    /// Whether a window manager decides about windows.
    pub(crate) async fn is_managed(&self) -> Result<bool, XError> {
        let attributes = self.x.ask(GetWindowAttributesRequest { window: self.root }, 0).await?;
        Ok(u32::from(attributes.all_event_masks) & u32::from(EventMask::SUBSTRUCTURE_REDIRECT) != 0)
    }

    /// Waits until the server has handled what was sent.
    pub(crate) async fn sync(&self) -> Result<(), XError> {
        self.x.ask(GetInputFocusRequest, 0).await.map(drop)
    }

    pub(crate) fn move_to(&self, place: Point) {
        self.fake(MOTION, 0, place);
    }

    /// Presses or releases a button.
    pub(crate) fn button(&self, button: u8, down: bool) {
        self.fake(if down { BUTTON_PRESS } else { BUTTON_PRESS + 1 }, button, Point { x: 0, y: 0 });
    }

    pub(crate) fn hold_button(&self, button: u8) -> PressedInput<'_> {
        self.button(button, true);
        PressedInput { display: self, released: BUTTON_PRESS + 1, detail: button }
    }

    pub(crate) fn hold_key(&self, code: u8) -> PressedInput<'_> {
        self.fake(KEY_PRESS, code, Point { x: 0, y: 0 });
        PressedInput { display: self, released: KEY_PRESS + 1, detail: code }
    }

    pub(crate) fn key(&self, code: u8, down: bool) {
        self.fake(if down { KEY_PRESS } else { KEY_PRESS + 1 }, code, Point { x: 0, y: 0 });
    }

    pub(crate) fn tap(&self, code: u8) {
        drop(self.hold_key(code));
    }

    fn fake(&self, kind: u8, detail: u8, place: Point) {
        let side = |at: i32| i16::try_from(at).unwrap_or(i16::MAX);
        let (root_x, root_y) = (side(place.x), side(place.y));
        let root = if kind == MOTION { self.root } else { 0 };
        let event = FakeInputRequest { type_: kind, detail, time: 0, root, root_x, root_y, deviceid: 0 };
        self.x.send(event, self.xtest);
    }

    /// How much was drawn until now; later drawing is reported again.
    pub(crate) async fn drawn(&self) -> Result<u64, XError> {
        if let Some((opcode, id)) = self.damage {
            // The next report comes only after the last one was taken back.
            self.x.send(SubtractRequest { damage: id, repair: 0, parts: 0 }, opcode);
        }
        self.sync().await?;
        Ok(self.x.events().borrow().damage)
    }

    /// Waits until something was drawn since `before`, for at most `first`, and then until nothing was drawn
    /// for `quiet`; at most until `longest` is over.
    pub(crate) async fn settle(&self, before: Option<u64>, times: SettleTimes) -> Result<(), XError> {
        let end = Instant::now() + times.longest;
        self.sync().await?;
        if self.damage.is_none() {
            tokio::time::sleep(times.longest / 2).await;
            return Ok(());
        }
        let mut events = self.x.events();
        let mut seen = before;
        loop {
            let wait = match seen {
                Some(_) => times.first,
                None => times.quiet,
            };
            let mark = match seen.take() {
                Some(before) => before,
                None => self.drawn().await?,
            };
            let until = (Instant::now() + wait).min(end);
            let drawn = async {
                while events.borrow_and_update().damage == mark {
                    events.changed().await.map_err(|_| XError::Closed)?;
                }
                Ok::<_, XError>(())
            };
            match timeout_at(until, drawn).await {
                Err(_) => return Ok(()),
                Ok(drawn) => drawn?,
            }
        }
    }

    /// The pixels of a part of the screen, with the pointer.
    pub(crate) async fn picture(&self, corner: Point, size: Size) -> Result<RgbImage, XError> {
        let side = |side: u32| u16::try_from(side).unwrap_or(u16::MAX);
        let start = |at: i32| i16::try_from(at).unwrap_or(i16::MAX);
        let request = GetImageRequest {
            format: ImageFormat::Z_PIXMAP,
            drawable: self.root,
            x: start(corner.x),
            y: start(corner.y),
            width: side(size.width),
            height: side(size.height),
            plane_mask: u32::MAX,
        };
        let reply = self.x.ask(request, 0).await?;
        let picture = from_x(&reply.data, size);
        let mut picture = picture.ok_or_else(|| XError::Broken("a picture of another size".to_owned()))?;
        if let Some(opcode) = self.xfixes
            && let Ok(cursor) = self.x.ask(GetCursorImageRequest, opcode).await
        {
            let at = |at: i16, hot: u16, corner: i32| i32::from(at) - i32::from(hot) - corner;
            let corner =
                Point { x: at(cursor.x, cursor.xhot, corner.x), y: at(cursor.y, cursor.yhot, corner.y) };
            let size = Size { width: cursor.width.into(), height: cursor.height.into() };
            draw_pointer(&mut picture, &Pointer { corner, size, pixels: cursor.cursor_image });
        }
        Ok(picture)
    }
}
