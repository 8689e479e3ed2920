//! Where an element is on the page, and whether it is still the one that was shown.

use serde::Deserialize;
use serde_json::json;
use toolwright_core::ToolError;

use crate::instance::{Instance, World, WorldError};
use crate::refs::ElementKey;
use crate::report::quoted;

/// What is known of an element when it is acted on.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ElementFacts {
    pub(crate) kind: String,
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) tag: String,
    #[serde(rename = "type")]
    pub(crate) input_type: String,
    pub(crate) autocomplete: String,
    pub(crate) password: bool,
    pub(crate) editable: bool,
    pub(crate) value: String,
    pub(crate) checked: bool,
    pub(crate) disabled: bool,
    pub(crate) readonly: bool,
    pub(crate) href: String,
    pub(crate) action: String,
    pub(crate) method: String,
    pub(crate) host: String,
    pub(crate) title: String,
    /// The text around the element: its form, or what it stands in.
    pub(crate) page: String,
}

/// An element that is there, in pixels of the visible page.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    pub(crate) facts: ElementFacts,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) obstacle: Option<Obstacle>,
}

/// Why a click would not reach an element.
#[derive(Debug, Clone)]
pub(crate) enum Obstacle {
    /// It takes no space.
    Invisible,
    /// It takes no clicks.
    Inert,
    /// Something else is in front of it, with buttons to close it.
    Covered { by: String, buttons: Vec<String> },
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LocateAnswer {
    stale: Option<String>,
    was: String,
    now: String,
    near: Vec<u64>,
    facts: ElementFacts,
    invisible: bool,
    inert: bool,
    x: f64,
    y: f64,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    cover: Option<String>,
    buttons: Vec<String>,
}

#[derive(Deserialize)]
struct HitAnswer {
    ok: bool,
    #[serde(default)]
    cover: String,
    #[serde(default)]
    buttons: Vec<String>,
}

impl Instance {
    /// Finds an element that was shown. An error when it is gone or is called otherwise now.
    pub(crate) async fn locate(&mut self, key: ElementKey, scroll: bool) -> Result<Located, WorldError> {
        let world = self.world_of(key).ok_or(WorldError::Lost)?;
        let arguments = json!([key.number, {"scroll": scroll}]);
        let found: LocateAnswer = self.call(&world, "locate", arguments).await?;
        if let Some(why) = &found.stale {
            return Err(self.stale(key, why, &found).into());
        }
        let mut located = Located {
            facts: found.facts,
            x: found.x,
            y: found.y,
            left: found.left,
            top: found.top,
            width: found.width,
            height: found.height,
            obstacle: None,
        };
        if found.invisible {
            located.obstacle = Some(Obstacle::Invisible);
            return Ok(located);
        }
        if let Some(by) = found.cover {
            let buttons = self.render_all(world.id, &found.buttons);
            located.obstacle = Some(Obstacle::Covered { by, buttons });
        }
        if found.inert {
            located.obstacle = Some(Obstacle::Inert);
        }
        self.through_frames(world, &mut located).await?;
        Ok(located)
    }

    /// Moves a place inside a frame to where it is on the whole page, frame by frame.
    async fn through_frames(&mut self, mut world: World, located: &mut Located) -> Result<(), WorldError> {
        while let Some(parent) = world.parent {
            let outer = self.world_of(parent).ok_or(WorldError::Lost)?;
            let arguments = json!([parent.number, {"scroll": false}]);
            let frame: LocateAnswer = self.call(&outer, "locate", arguments).await?;
            if frame.stale.is_some() || frame.invisible {
                return Err(WorldError::Lost);
            }
            for (value, offset) in [
                (&mut located.x, frame.left),
                (&mut located.left, frame.left),
                (&mut located.y, frame.top),
                (&mut located.top, frame.top),
            ] {
                *value += offset;
            }
            let hit: HitAnswer =
                self.call(&outer, "hitsFrame", json!([parent.number, located.x, located.y])).await?;
            if !hit.ok && located.obstacle.is_none() {
                let buttons = self.render_all(outer.id, &hit.buttons);
                located.obstacle = Some(Obstacle::Covered { by: hit.cover, buttons });
            }
            world = outer;
        }
        Ok(())
    }

    fn render_all(&mut self, world: u32, lines: &[String]) -> Vec<String> {
        let mut shown = Vec::new();
        lines.iter().map(|line| self.refs.render(world, line, &mut shown)).collect()
    }

    fn stale(&mut self, key: ElementKey, why: &str, found: &LocateAnswer) -> ToolError {
        let number = self.refs.number(key);
        let message = match why {
            "changed" => {
                format!("element {number} was {} and is {} now", quoted(&found.was), quoted(&found.now))
            }
            _ => format!("element {number} was {} and is gone", quoted(&found.was)),
        };
        let near: Vec<String> = found
            .near
            .iter()
            .map(|number| self.refs.number(ElementKey { world: key.world, number: *number }).to_string())
            .collect();
        let error = ToolError::new(message);
        match near.is_empty() {
            true => error.hint("read the page again: `browser_read`"),
            false => {
                error.hint(format!("of that name now: {}; read the page before using it", near.join(", ")))
            }
        }
    }
}

impl ElementFacts {
    /// The element in words, escaped.
    pub(crate) fn words(&self) -> String {
        format!("{} {}", self.role.escape_debug(), quoted(&self.name))
    }
}
