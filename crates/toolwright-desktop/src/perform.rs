//! Doing an action on a desktop.

use std::time::Duration;

use tokio::time::sleep;
use toolwright_core::{ToolError, ToolOutput};

use crate::action::Action;
use crate::desktop::Desktop;
use crate::display::SettleTimes;
use crate::keyboard::HeldKeys;
use crate::keys::combinations;
use crate::scale::{Point, Scale};

/// How long the screen is waited for after an action.
const AFTER_ACTION: SettleTimes = SettleTimes {
    first: Duration::from_millis(250),
    quiet: Duration::from_millis(80),
    longest: Duration::from_secs(1),
};
/// How long it is waited for when only a picture is wanted.
const BEFORE_PICTURE: SettleTimes = SettleTimes {
    first: Duration::from_millis(80),
    quiet: Duration::from_millis(80),
    longest: Duration::from_secs(1),
};
/// Between the presses of a double click. Programs count presses within about 400 ms.
const BETWEEN_CLICKS: Duration = Duration::from_millis(60);
/// Between the moves of a drag, which programs must see one by one.
const DRAG_STEP: Duration = Duration::from_millis(8);
const DRAG_STEPS: i32 = 12;

/// Starts the browser of the sandbox.
const WEB_BROWSER: &str = r#"
for name in x-www-browser firefox firefox-esr chromium chromium-browser google-chrome epiphany; do
  command -v $name >/dev/null 2>&1 || continue
  case $(readlink -f "$(command -v $name)") in
    *chrom*) set -- --no-first-run --no-default-browser-check --disable-dev-shm-usage "$@"
      [ "$INNER_SANDBOX" = yes ] && [ "$(id -u)" != 0 ] || set -- --no-sandbox --test-type "$@"
      [ -z "$http_proxy" ] || set -- --proxy-server="$http_proxy" --proxy-bypass-list='<-loopback>' "$@" ;;
  esac
  exec $name "$@"
done
echo 'no web browser is installed: add chromium or firefox-esr' >&2
exit 127
"#;

impl Desktop {
    /// Does one action. `Some` is what it returns in place of a screenshot.
    pub(crate) async fn perform(&mut self, action: &Action) -> Result<Option<ToolOutput>, ToolError> {
        let scale = self.scale().await?;
        let before = self.display.drawn().await?;
        match action {
            Action::Key { combinations, repeat } => {
                for _ in 0..*repeat {
                    for keys in combinations {
                        drop(self.display.hold_keys(keys).await?);
                        self.display.sync().await?;
                    }
                }
            }
            Action::HoldKey { keys, duration } => {
                let held = self.display.hold_keys(keys).await?;
                sleep(*duration).await;
                drop(held);
            }
            Action::HoldDown { keys, down } => self.display.leave_keys(keys, *down).await?,
            Action::Type { text, at, clear, press_enter } => {
                if at.is_some() {
                    self.click(scale, *at, 1, 1, &[]).await?;
                    self.display.settle(Some(before), AFTER_ACTION).await?;
                }
                if *clear {
                    for keys in combinations("ctrl+a BackSpace")? {
                        drop(self.display.hold_keys(&keys).await?);
                    }
                }
                self.display.type_text(text).await?;
                if *press_enter {
                    self.display.type_text("\n").await?;
                }
            }
            Action::CursorPosition => {
                let (place, _) = self.display.pointer().await?;
                let Point { x, y } = scale.to_picture(place);
                return Ok(Some(ToolOutput::text(format!("X={x},Y={y}"))));
            }
            Action::Move { to, keys } => {
                let to = scale.to_screen(*to)?;
                let _held = self.modifiers(keys).await?;
                self.display.move_to(to);
            }
            Action::ButtonDown { button, at } => {
                self.point(scale, *at)?;
                self.display.button(*button, true);
            }
            Action::ButtonUp { button, at } => {
                self.point(scale, *at)?;
                self.display.button(*button, false);
            }
            Action::Click { button, count, at, keys } => {
                self.click(scale, *at, *button, *count, keys).await?;
            }
            Action::Drag { path, keys } => self.drag(scale, path, keys).await?,
            Action::Scroll { button, amount, at, keys } => {
                self.point(scale, *at)?;
                let _held = self.modifiers(keys).await?;
                for _ in 0..*amount {
                    drop(self.display.hold_button(*button));
                }
            }
            Action::Wait { duration } => sleep(*duration).await,
            Action::Screenshot => {}
            Action::Zoom { region } => {
                self.display.settle(None, BEFORE_PICTURE).await?;
                return self.zoom(*region).await.map(Some);
            }
            Action::OpenWebBrowser => self.open_browser(None).await?,
            Action::Navigate { url } => self.open_browser(Some(url)).await?,
            Action::Read => return self.read().await.map(Some),
            Action::ClickRef { reference } => {
                let place = self.place_of(reference).await?;
                self.display.move_to(place);
                drop(self.display.hold_button(1));
            }
            // It was answered before anything was done.
            Action::Confirm { .. } => {}
        }
        self.display.sync().await?;
        if !self.session.is_own() {
            self.display.restore_keyboard().await?;
        }
        let waited = matches!(action, Action::Wait { .. } | Action::Screenshot);
        match waited {
            true => self.display.settle(None, BEFORE_PICTURE).await?,
            false => self.display.settle(Some(before), AFTER_ACTION).await?,
        }
        Ok(None)
    }

    fn point(&self, scale: Scale, at: Option<Point>) -> Result<(), ToolError> {
        if let Some(at) = at {
            self.display.move_to(scale.to_screen(at)?);
        }
        Ok(())
    }

    async fn modifiers(&self, keys: &[u32]) -> Result<Option<HeldKeys<'_>>, ToolError> {
        match keys {
            [] => Ok(None),
            keys => self.display.hold_keys(keys).await.map(Some),
        }
    }

    async fn click(
        &self,
        scale: Scale,
        at: Option<Point>,
        button: u8,
        count: u32,
        keys: &[u32],
    ) -> Result<(), ToolError> {
        self.point(scale, at)?;
        let _held = self.modifiers(keys).await?;
        for click in 0..count {
            if click > 0 {
                sleep(BETWEEN_CLICKS).await;
            }
            drop(self.display.hold_button(button));
        }
        self.display.sync().await?;
        Ok(())
    }

    /// Moves in small steps with the button down: programs see a drag only after some of them.
    async fn drag(&self, scale: Scale, path: &[Point], keys: &[u32]) -> Result<(), ToolError> {
        let path: Result<Vec<Point>, ToolError> = path.iter().map(|place| scale.to_screen(*place)).collect();
        let path = path?;
        let Some((start, rest)) = path.split_first() else { return Ok(()) };
        let _held = self.modifiers(keys).await?;
        self.display.move_to(*start);
        self.display.sync().await?;
        let button = self.display.hold_button(1);
        sleep(DRAG_STEP).await;
        let mut from = *start;
        for to in rest {
            for step in 1..=DRAG_STEPS {
                let between = |from: i32, to: i32| from + (to - from) * step / DRAG_STEPS;
                self.display.move_to(Point { x: between(from.x, to.x), y: between(from.y, to.y) });
                self.display.sync().await?;
                sleep(DRAG_STEP).await;
            }
            from = *to;
        }
        drop(button);
        Ok(())
    }

    /// Opens an address in the browser of the sandbox. One that runs already opens it in a new tab.
    async fn open_browser(&mut self, url: Option<&str>) -> Result<(), ToolError> {
        let address = match url {
            Some(url) => format!(" '{}'", web_address(url)?),
            None => String::new(),
        };
        let inner = if self.sandbox.isolates() { "no" } else { "yes" };
        self.start_program(&format!("INNER_SANDBOX={inner}; set --{address}\n{WEB_BROWSER}")).await?;
        Ok(())
    }

    /// A result of a call: what the last action returned, or the screen.
    pub(crate) async fn result(&mut self, returned: Option<ToolOutput>) -> Result<ToolOutput, ToolError> {
        match returned {
            Some(output) => Ok(output),
            None => self.screenshot().await,
        }
    }

    /// An error, with the screen as it is now.
    pub(crate) async fn failed(&mut self, error: ToolError) -> ToolError {
        if error.is_fatal() || self.is_gone() {
            return error;
        }
        match self.screenshot().await {
            Ok(output) => error.with_partial(output),
            Err(_) => error,
        }
    }
}

/// An address of the web, with nothing that a shell reads.
fn web_address(url: &str) -> Result<String, ToolError> {
    let url = url.trim();
    let url =
        if url.contains("://") || url == "about:blank" { url.to_owned() } else { format!("https://{url}") };
    let known = ["http://", "https://", "about:blank"]
        .iter()
        .any(|start| url.to_ascii_lowercase().starts_with(start));
    let clean = !url.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\'');
    if !known || !clean || url.len() > 8000 {
        return Err(ToolError::invalid("`text` must be an http(s) address"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_web_reach_the_shell() {
        assert_eq!(web_address("example.com/a?b=c#d").unwrap(), "https://example.com/a?b=c#d");
        assert_eq!(web_address("about:blank").unwrap(), "about:blank");
        for wrong in
            ["file:///etc/passwd", "https://a/'; rm -rf /; '", "javascript:1 2", "https://a\n", "--flag://"]
        {
            let result = web_address(wrong);
            assert!(result.is_err() || !result.unwrap().contains(['\'', '\n']), "{wrong}");
        }
        assert!(web_address("file:///etc/passwd").is_err());
    }
}
