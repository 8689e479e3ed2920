//! The text of a page with all its frames, in reading order.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::ToolError;

use crate::instance::{Instance, TabHead, World, WorldError};
use crate::refs::ElementKey;
use crate::report::PageLine;

/// The most characters of a page that are read.
const MAX_TEXT: usize = 1_000_000;
/// The most frames of a page that are read, and how deep they may be nested.
const MAX_FRAMES: usize = 24;
const MAX_DEPTH: usize = 5;

/// How a page is read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WalkOptions {
    /// Only what can be seen without scrolling.
    pub(crate) view: bool,
    /// With the addresses of links.
    pub(crate) urls: bool,
}

/// The text of a page.
#[derive(Debug, Default)]
pub(crate) struct PageText {
    pub(crate) lines: Vec<PageLine>,
    pub(crate) title: String,
    pub(crate) url: String,
    /// Characters that are laid out so that nobody can see them.
    pub(crate) hidden: u64,
    /// The page has more than can be read.
    pub(crate) cut: bool,
    /// How many pixels are below the part that can be seen.
    pub(crate) below: i64,
    /// The frame could not be read in the middle of a navigation.
    frames: usize,
}

#[derive(Deserialize, Default)]
struct Walked {
    text: String,
    title: String,
    url: String,
    frames: Vec<(usize, u64)>,
    hosts: usize,
    hidden: u64,
    cut: bool,
    below: i64,
}

impl Instance {
    /// The text of the main document and of its frames.
    pub(crate) async fn page(&mut self, tab: &TabHead, options: WalkOptions) -> Result<PageText, ToolError> {
        // A navigation may take the document away in the middle; the next one is read then.
        for _ in 0..3 {
            let world = self.main_world(tab).await?;
            match self.walk(tab, world, None, options).await {
                Ok(text) => return Ok(text),
                Err(WorldError::Tool(error)) => return Err(error),
                Err(WorldError::Lost) => self.settle(&tab.target, &HashSet::new()).await,
            };
        }
        Err(ToolError::new("the page navigates again and again").hint("wait, or open another page"))
    }

    /// The text inside one element.
    pub(crate) async fn element_text(
        &mut self,
        key: ElementKey,
        options: WalkOptions,
    ) -> Result<PageText, WorldError> {
        let world = self.world_of(key).ok_or(WorldError::Lost)?;
        let tab = self.tab(Some(world.tab))?;
        if let Some((frame, session)) = self.frame_of(&world, key.number).await {
            let inner = self.world(&tab, &frame, &session, Some(key)).await?;
            return self.walk(&tab, inner, None, options).await;
        }
        self.walk(&tab, world, Some(key.number), options).await
    }

    async fn walk(
        &mut self,
        tab: &TabHead,
        world: World,
        root: Option<u64>,
        options: WalkOptions,
    ) -> Result<PageText, WorldError> {
        let mut text = PageText::default();
        let main = self.walk_one(&world, root, options, MAX_TEXT).await?;
        let (title, url) = (main.title.clone(), main.url.clone());
        self.add(&mut text, tab, &world, main, options, 0).await?;
        (text.title, text.url) = (title, url);
        Ok(text)
    }

    async fn walk_one(
        &mut self,
        world: &World,
        root: Option<u64>,
        options: WalkOptions,
        limit: usize,
    ) -> Result<Walked, WorldError> {
        let arguments = json!([{"view": options.view, "urls": options.urls, "limit": limit, "root": root}]);
        let walked: Walked = self.call(world, "walk", arguments.clone()).await?;
        if walked.hosts == 0 || !self.open_closed_roots(world, walked.hosts).await {
            return Ok(walked);
        }
        self.call(world, "walk", arguments).await
    }

    /// Hands closed shadow roots to the page script. True when there are any.
    async fn open_closed_roots(&self, world: &World, hosts: usize) -> bool {
        let mut any = false;
        for at in 0..hosts.min(8) {
            any |= self.open_closed_root(world, at).await.is_some();
        }
        any
    }

    async fn open_closed_root(&self, world: &World, at: usize) -> Option<()> {
        let session = Some(world.session());
        let host = self.object(world, "hostAt", json!([at])).await.ok()??;
        let params = json!({"objectId": host, "depth": 1, "pierce": true});
        let node = self.engine.cdp.send(session, "DOM.describeNode", params).await.ok()?;
        let root = node.pointer("/node/shadowRoots/0")?;
        if root.get("shadowRootType").and_then(Value::as_str) != Some("closed") {
            return None;
        }
        let params =
            json!({"backendNodeId": root.get("backendNodeId")?, "executionContextId": world.context()});
        let object = self.engine.cdp.send(session, "DOM.resolveNode", params).await.ok()?;
        let root = object.pointer("/object/objectId")?;
        let params = json!({
            "functionDeclaration": "function (root) { globalThis.__toolwright.commands.adopt(this, root); }",
            "objectId": host, "arguments": [{"objectId": root}],
        });
        self.engine.cdp.send(session, "Runtime.callFunctionOn", params).await.ok().map(|_| ())
    }

    /// Adds the lines of a document, each frame's text below the line of its element.
    async fn add(
        &mut self,
        text: &mut PageText,
        tab: &TabHead,
        world: &World,
        walked: Walked,
        options: WalkOptions,
        depth: usize,
    ) -> Result<(), WorldError> {
        text.hidden += walked.hidden;
        text.cut |= walked.cut;
        if depth == 0 {
            text.below = walked.below;
        }
        let mut frames = walked.frames.into_iter().peekable();
        for (index, line) in walked.text.split('\n').filter(|_| !walked.text.is_empty()).enumerate() {
            text.lines.push(PageLine { world: world.id, text: line.to_owned() });
            let Some((_, number)) = frames.next_if(|(at, _)| *at == index) else { continue };
            if depth >= MAX_DEPTH || text.frames >= MAX_FRAMES {
                continue;
            }
            text.frames += 1;
            let Some((frame, session)) = self.frame_of(world, number).await else { continue };
            let parent = Some(ElementKey { world: world.id, number });
            // A frame that goes away while it is read leaves its line.
            let Ok(inner) = self.world(tab, &frame, &session, parent).await else { continue };
            let used: usize = text.lines.iter().map(|line| line.text.len()).sum();
            let Ok(walked) = self.walk_one(&inner, None, options, MAX_TEXT.saturating_sub(used)).await else {
                continue;
            };
            Box::pin(self.add(text, tab, &inner, walked, options, depth + 1)).await?;
        }
        Ok(())
    }

    /// Tells the documents which of their elements a model was shown, and how they were called.
    pub(crate) async fn commit(&self, shown: &[ElementKey]) {
        let mut worlds: Vec<u32> = shown.iter().map(|key| key.world).collect();
        worlds.sort_unstable();
        worlds.dedup();
        for world in worlds {
            let numbers: Vec<u64> =
                shown.iter().filter(|key| key.world == world).map(|key| key.number).collect();
            let Some(known) = self.world_of(ElementKey { world, number: 0 }) else { continue };
            // A document that is gone needs no reminder: its elements are refused.
            let _ = self.call::<Value>(&known, "commit", json!([numbers])).await;
        }
    }
}
