//! Making one step: with real mouse and keyboard events, on the element that was decided about.

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ExecRequest, ToolError};

use crate::act::{PageStep, StepAction, StepOutcome, located, number_of, wait_of};
use crate::input::MouseButton;
use crate::instance::{Instance, World, WorldError};
use crate::locate::{ElementFacts, Located, Obstacle};
use crate::reading::gone;
use crate::refs::ElementKey;
use crate::report::quoted;
use crate::settle::Settled;

/// Where a step acts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StepTarget {
    Element {
        key: ElementKey,
        to: Option<ElementKey>,
    },
    /// A place of the visible page, or the page as a whole.
    Place(Option<(f64, f64)>),
}

/// The answers of the page script to the commands of a step.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct FieldAnswer {
    stale: Option<String>,
    value: String,
    exact: bool,
    raw: String,
    length: usize,
    focused: bool,
    moved: bool,
    missing: Option<String>,
    options: Vec<String>,
    not_select: bool,
    single: bool,
}

impl Instance {
    /// Makes a step. `facts` are those that were decided about; an element that differs from them is not
    /// touched.
    pub(crate) async fn perform(
        &mut self,
        step: &PageStep,
        target: &StepTarget,
        facts: &ElementFacts,
        last: bool,
    ) -> Result<StepOutcome, ToolError> {
        match target {
            StepTarget::Place(place) => self.perform_at(step, *place).await,
            StepTarget::Element { key, to } => self.perform_on(step, *key, *to, facts, last).await,
        }
    }

    async fn perform_at(
        &mut self,
        step: &PageStep,
        place: Option<(f64, f64)>,
    ) -> Result<StepOutcome, ToolError> {
        let tab = self.tab(None)?;
        let before = self.requests(&tab.target);
        let session = tab.session.clone();
        let words = match (step.action, place) {
            (StepAction::Press, _) => {
                self.press(&session, step.text()?).await?;
                format!("pressed {}", quoted(step.text()?))
            }
            (StepAction::Type, _) => {
                self.type_keys(&session, step.text()?).await?;
                "typed".to_owned()
            }
            (StepAction::Scroll, _) => {
                let world = self.main_world(&tab).await?;
                self.scroll(&world, None, step).await?
            }
            (StepAction::Wait | StepAction::WaitGone, _) => {
                let (pause, limit) = wait_of(step)?;
                match pause {
                    Some(pause) => {
                        tokio::time::sleep(pause).await;
                        format!("waited {} s", pause.as_secs_f64())
                    }
                    None => {
                        let gone = step.action == StepAction::WaitGone;
                        if !self.wait_for(&tab, step.text()?, gone, limit).await? {
                            let state = if gone { "still there" } else { "not there" };
                            let message =
                                format!("{} is {state} after {} s", quoted(step.text()?), limit.as_secs());
                            return Err(ToolError::of(ErrorKind::Timeout, message));
                        }
                        format!("waited for {}", quoted(step.text()?))
                    }
                }
            }
            (StepAction::Hover, Some((x, y))) => {
                self.move_mouse(&session, x, y).await?;
                format!("moved the mouse to {x}, {y}")
            }
            (StepAction::Click | StepAction::DoubleClick | StepAction::RightClick, Some(place)) => {
                let (button, count) = button_of(step.action);
                self.click(&session, place, button, count).await?;
                format!("clicked at {}, {}", place.0, place.1)
            }
            (StepAction::Drag, Some(from)) => {
                let reference = step.to.as_deref().unwrap_or_default();
                let key = self.element(reference)?;
                let to = located(self.locate(key, false).await, reference)?;
                self.drag(&session, from, (to.x, to.y)).await?;
                format!("dragged to {}", to.facts.words())
            }
            _ => return Err(ToolError::invalid("the step needs `ref`")),
        };
        let settled = self.settle(&tab.target, &before).await;
        Ok(StepOutcome { words, tab: tab.number, settled })
    }

    async fn perform_on(
        &mut self,
        step: &PageStep,
        key: ElementKey,
        to: Option<ElementKey>,
        decided: &ElementFacts,
        last: bool,
    ) -> Result<StepOutcome, ToolError> {
        let reference = step.reference.as_deref().unwrap_or_default();
        let found = located(self.locate(key, true).await, reference)?;
        let facts = &found.facts;
        let same = (&facts.role, &facts.name, &facts.host, &facts.action, &facts.href)
            == (&decided.role, &decided.name, &decided.host, &decided.action, &decided.href);
        if !same {
            let message = format!("{} is {} now; it was not touched", decided.words(), facts.words());
            return Err(ToolError::new(message).hint("read the page again: `browser_read`"));
        }
        if facts.disabled && step.action != StepAction::Hover {
            return Err(ToolError::new(format!("{} is disabled", facts.words())));
        }
        let world = self.world_of(key).ok_or_else(|| gone(reference))?;
        let tab = self.tab(Some(world.tab))?;
        self.current = tab.number;
        let session = tab.session.clone();
        let before = self.requests(&tab.target);
        let element = facts.words();
        let words = match step.action {
            StepAction::Click | StepAction::DoubleClick | StepAction::RightClick => {
                let (button, count) = button_of(step.action);
                let place = reachable(&found)?;
                self.click(&session, place, button, count).await?;
                format!("{}ed {element}", step_word(step.action))
            }
            StepAction::Hover => {
                let (x, y) = reachable(&found)?;
                self.move_mouse(&session, x, y).await?;
                format!("hovers over {element}")
            }
            StepAction::Check | StepAction::Uncheck => {
                let wanted = step.action == StepAction::Check;
                self.set_checked(&session, key, &found, wanted).await?
            }
            StepAction::Fill => self.fill(&session, &world, key, &found, step.text()?).await?,
            StepAction::Type => {
                typable(facts)?;
                self.focus(&world, key, false).await?;
                self.type_keys(&session, step.text()?).await?;
                format!("typed into {element}")
            }
            StepAction::Press => {
                self.focus(&world, key, false).await?;
                self.press(&session, step.text()?).await?;
                format!("pressed {} in {element}", quoted(step.text()?))
            }
            StepAction::Select => self.select(&world, key, &found, step.text()?).await?,
            StepAction::Scroll => self.scroll(&world, Some(key), step).await?,
            StepAction::Drag => {
                let from = reachable(&found)?;
                let to = to.ok_or_else(|| ToolError::invalid("`drag` needs `to`"))?;
                let drop = located(self.locate(to, false).await, step.to.as_deref().unwrap_or_default())?;
                self.drag(&session, from, (drop.x, drop.y)).await?;
                format!("dragged {element} to {}", drop.facts.words())
            }
            StepAction::Upload => self.upload(&world, key, &found, step.text()?).await?,
            StepAction::Wait | StepAction::WaitGone => {
                return Err(ToolError::invalid("`wait` waits for a text of the page; it takes no `ref`"));
            }
        };
        // Filling several fields in one call need not wait for a frame after each.
        let quick = !last && matches!(step.action, StepAction::Fill | StepAction::Type);
        let settled = match quick {
            true => Settled::default(),
            false => self.settle(&tab.target, &before).await,
        };
        Ok(StepOutcome { words, tab: tab.number, settled })
    }

    async fn field(&self, world: &World, command: &str, arguments: Value) -> Result<FieldAnswer, ToolError> {
        match self.call::<FieldAnswer>(world, command, arguments).await {
            Ok(FieldAnswer { stale: Some(_), .. }) | Err(WorldError::Lost) => {
                Err(ToolError::new("the element is gone").hint("read the page again: `browser_read`"))
            }
            Ok(answer) => Ok(answer),
            Err(WorldError::Tool(error)) => Err(error),
        }
    }

    async fn focus(&self, world: &World, key: ElementKey, select: bool) -> Result<(), ToolError> {
        let answer = self.field(world, "focus", json!([key.number, select])).await?;
        match answer.focused {
            true => Ok(()),
            false => Err(ToolError::new("the element does not take the focus").hint("click it first")),
        }
    }

    async fn fill(
        &mut self,
        session: &str,
        world: &World,
        key: ElementKey,
        found: &Located,
        text: &str,
    ) -> Result<String, ToolError> {
        let facts = &found.facts;
        typable(facts)?;
        let element = facts.words();
        let picked = ["date", "time", "month", "week", "datetime-local", "color", "range"];
        if facts.tag == "input" && picked.contains(&facts.input_type.as_str()) {
            let answer = self.field(world, "setValue", json!([key.number, text])).await?;
            if !answer.exact {
                let kind = &facts.input_type;
                let message = format!("{element} holds {} now: it takes a {kind}", quoted(&answer.value));
                return Err(
                    ToolError::new(message).hint("dates are `2026-01-31`, times `13:45`, colours `#ff0000`")
                );
            }
            return Ok(format!("filled {element}"));
        }
        self.focus(world, key, true).await?;
        match text.is_empty() {
            true => self.press(session, "Delete").await?,
            false => self.insert_text(session, text).await?,
        }
        let now = self.field(world, "currentValue", number_of(key)).await;
        // The page may have gone on by itself once the field was full.
        let Ok(now) = now else { return Ok(format!("filled {element}")) };
        let plain = |text: &str| text.replace("\r\n", "\n").trim_end_matches('\n').to_owned();
        let same = match facts.password {
            true => now.length == text.encode_utf16().count(),
            false => plain(&now.raw) == plain(text),
        };
        Ok(match same {
            true => format!("filled {element}"),
            false if facts.password => format!("filled {element}; it holds {} characters now", now.length),
            false => format!("filled {element}; it holds {} now", quoted(&now.raw)),
        })
    }

    async fn set_checked(
        &mut self,
        session: &str,
        key: ElementKey,
        found: &Located,
        wanted: bool,
    ) -> Result<String, ToolError> {
        let element = found.facts.words();
        if found.facts.kind != "c" {
            return Err(ToolError::invalid(format!("{element} is neither a checkbox nor a radio button")));
        }
        let state = if wanted { "on" } else { "off" };
        if found.facts.checked == wanted {
            return Ok(format!("{element} is {state} already"));
        }
        self.click(session, reachable(found)?, MouseButton::Left, 1).await?;
        match self.locate(key, false).await {
            Ok(now) if now.facts.checked != wanted => {
                Err(ToolError::new(format!("{element} did not turn {state} when it was clicked")))
            }
            _ => Ok(format!("turned {state} {element}")),
        }
    }

    async fn select(
        &mut self,
        world: &World,
        key: ElementKey,
        found: &Located,
        text: &str,
    ) -> Result<String, ToolError> {
        let wanted: Vec<&str> = text.split('\n').collect();
        let answer = self.field(world, "choose", json!([key.number, wanted])).await?;
        let element = found.facts.words();
        if answer.not_select {
            let error = ToolError::invalid(format!("{element} is not a select field"));
            return Err(error.hint("click it, then click the option"));
        }
        if answer.single {
            return Err(ToolError::invalid(format!("{element} takes one option")));
        }
        match answer.missing {
            Some(missing) if answer.options.is_empty() => {
                Err(ToolError::invalid(format!("the option {} cannot be chosen", quoted(&missing))))
            }
            Some(missing) => {
                let options: Vec<String> = answer.options.iter().map(|option| quoted(option)).collect();
                Err(ToolError::invalid(format!("there is no option {}", quoted(&missing)))
                    .hint(format!("options: {}", options.join(", "))))
            }
            None => Ok(format!("selected {} in {element}", quoted(&answer.value))),
        }
    }

    async fn scroll(
        &mut self,
        world: &World,
        key: Option<ElementKey>,
        step: &PageStep,
    ) -> Result<String, ToolError> {
        let direction = step.text.as_deref().unwrap_or("down");
        let number = key.map(|key| key.number);
        let answer = self.field(world, "scrollBy", json!([number, direction, 1])).await?;
        Ok(match answer.moved {
            true => format!("scrolled {direction}"),
            false => format!("it cannot be scrolled {direction} any further"),
        })
    }

    /// Gives files of the sandbox to a file field: those that its commands can see, too.
    async fn upload(
        &mut self,
        world: &World,
        key: ElementKey,
        found: &Located,
        text: &str,
    ) -> Result<String, ToolError> {
        let element = found.facts.words();
        if found.facts.input_type != "file" {
            return Err(ToolError::invalid(format!("{element} is not a file field")));
        }
        let names: Vec<&str> = text.split('\n').map(str::trim).filter(|name| !name.is_empty()).collect();
        let mut command = vec!["realpath", "-e", "-z", "--"];
        command.extend(&names);
        let found = self.sandbox.exec(ExecRequest::new(command)).await?;
        if !found.success() {
            let message = found.stderr.trim().to_owned();
            return Err(ToolError::of(ErrorKind::FileNotFound, message));
        }
        let files: Vec<&str> = found.stdout.split('\0').filter(|path| !path.is_empty()).collect();
        let lost = || ToolError::new("the element is gone");
        let object = match self.object(world, "nodeOf", number_of(key)).await {
            Ok(object) => object.ok_or_else(lost)?,
            Err(WorldError::Lost) => return Err(lost()),
            Err(WorldError::Tool(error)) => return Err(error),
        };
        let params = json!({"files": files, "objectId": object});
        self.send(world.session(), "DOM.setFileInputFiles", params).await?;
        Ok(format!("put {} files into {element}", files.len()))
    }
}

fn button_of(action: StepAction) -> (MouseButton, u32) {
    match action {
        StepAction::RightClick => (MouseButton::Right, 1),
        StepAction::DoubleClick => (MouseButton::Left, 2),
        _ => (MouseButton::Left, 1),
    }
}

fn step_word(action: StepAction) -> &'static str {
    match action {
        StepAction::RightClick => "right-click",
        StepAction::DoubleClick => "double-click",
        _ => "click",
    }
}

/// Where a click reaches the element.
fn reachable(found: &Located) -> Result<(f64, f64), ToolError> {
    let element = found.facts.words();
    match &found.obstacle {
        None => Ok((found.x, found.y)),
        Some(Obstacle::Invisible) => {
            Err(ToolError::new(format!("{element} cannot be seen"))
                .hint("something may have to be opened first"))
        }
        Some(Obstacle::Inert) => Err(ToolError::new(format!("{element} takes no clicks"))),
        Some(Obstacle::Covered { by, buttons }) => {
            let error =
                ToolError::new(format!("{element} is covered by {}", toolwright_core::text::visible(by)));
            match buttons.is_empty() {
                true => Err(error.hint("scroll, or close what is in front of it (`press` `Escape`)")),
                false => Err(error.hint(format!("in front of it: {}", buttons.join(" ")))),
            }
        }
    }
}

fn typable(facts: &ElementFacts) -> Result<(), ToolError> {
    let element = facts.words();
    if facts.tag == "select" {
        return Err(ToolError::invalid(format!("{element} is a select field: use `select`")));
    }
    if facts.input_type == "file" {
        return Err(ToolError::invalid(format!("{element} is a file field: use `upload`")));
    }
    if facts.readonly {
        return Err(ToolError::new(format!("{element} is read-only")));
    }
    let typed = facts.kind == "i" || facts.editable;
    let pressed = facts.kind == "c" || facts.kind == "b";
    if !typed || pressed {
        return Err(ToolError::invalid(format!("nothing can be typed into {element}")));
    }
    Ok(())
}
