//! The section `openapi` of a file: how its OpenAPI documents are used, and the tools they become.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolwright_core::{DataError, ErrorKind, Patterns, ToolError, read_data};
use toolwright_lang::{BoundFile, Needs, ServerState, ServerTools};
use toolwright_net::{HostRules, Proxies, Reach};
use toolwright_openapi::{ApiDocument, ImportOptions};

use crate::api_tool::{ApiClient, ApiSettings};
use crate::file::Environment;

/// The most bytes of a document.
const MAX_BYTES: u64 = 64 << 20;

/// The longest a call may take, unless the file says otherwise.
const TIMEOUT: f64 = 60.0;

/// The most pages one call may read.
const MAX_PAGES: u32 = 100;

/// What a file's `openapi` section says, by the path of the document.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenApiSection(BTreeMap<String, DocumentSection>);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DocumentSection {
    base_url: Option<String>,
    auth: BTreeMap<String, String>,
    tags: Vec<String>,
    methods: Vec<String>,
    paths: Vec<String>,
    operations: Vec<String>,
    headers: BTreeMap<String, String>,
    network: Option<Vec<String>>,
    select: BTreeMap<String, String>,
    pages: Option<u32>,
    timeout: Option<f64>,
    max_output: Option<usize>,
}

impl DocumentSection {
    fn check(&self) -> Result<(), DataError> {
        let wrong = |key: &str, message: String| Err(DataError::new(message).inside(key));
        if let Some(seconds) = self.timeout
            && !(seconds > 0.0 && seconds <= 86_400.0)
        {
            return wrong(
                "timeout",
                format!("`timeout` must be seconds, more than 0 and at most 86400, got {seconds}"),
            );
        }
        if let Some(pages) = self.pages
            && !(1..=MAX_PAGES).contains(&pages)
        {
            return wrong("pages", format!("`pages` must be from 1 to {MAX_PAGES}, got {pages}"));
        }
        if let Some(pointer) =
            self.select.values().find(|pointer| !pointer.is_empty() && !pointer.starts_with('/'))
        {
            return wrong("select", format!("`{pointer}` is not a JSON pointer, such as `/data/items`"));
        }
        if let Some(Err(reason)) = self.network.as_ref().map(|hosts| HostRules::parse(hosts)) {
            return wrong("network", format!("not a rule for hosts: {reason}"));
        }
        Ok(())
    }
}

impl OpenApiSection {
    pub(super) fn read(value: &Value) -> Result<Self, DataError> {
        let sections: BTreeMap<String, DocumentSection> =
            if value.is_null() { BTreeMap::new() } else { read_data(value)? };
        for (path, section) in &sections {
            section.check().map_err(|misfit| misfit.inside(path.as_str()))?;
        }
        Ok(OpenApiSection(sections))
    }

    /// The tools of the documents that are needed. Nothing is started, and nothing is reached.
    pub(crate) fn states(
        &self,
        bound: &BoundFile,
        needs: &Needs,
        folder: &Path,
        (environment, proxies): (&Environment, &Proxies),
        states: &mut HashMap<String, ServerState>,
    ) {
        for (name, path) in bound.openapi_files().into_iter().filter(|(name, _)| needs.server(name)) {
            let state = match self.tools(&path, folder, environment, proxies) {
                Ok(tools) => ServerState::Connected(tools),
                Err(error) => ServerState::Failed { error, required: true },
            };
            states.insert(name, state);
        }
    }

    fn tools(
        &self,
        path: &str,
        folder: &Path,
        environment: &Environment,
        proxies: &Proxies,
    ) -> Result<ServerTools, ToolError> {
        let text = read(&folder.join(path))?;
        let document = ApiDocument::parse(path, &text)?;
        let none = DocumentSection::default();
        let section = self.0.get(path).unwrap_or(&none);
        let api = document.import(&ImportOptions {
            base_url: section.base_url.clone(),
            tags: section.tags.clone(),
            methods: section.methods.clone(),
            paths: section.paths.clone(),
            operations: section.operations.clone(),
        })?;
        if let Some(unknown) =
            section.auth.keys().find(|name| !api.schemes.iter().any(|known| known.name == **name))
        {
            let known: Vec<&str> = api.schemes.iter().map(|scheme| scheme.name.as_str()).collect();
            let message = format!("`{path}` has no security scheme `{unknown}`");
            return Err(ToolError::invalid(message).hint(format!("it has: {}", known.join(", "))));
        }
        let wrong = |why| ToolError::invalid(format!("not a rule for hosts: {why}"));
        let reach = match &section.network {
            Some(hosts) => Some(Reach::Hosts(HostRules::parse(hosts).map_err(wrong)?)),
            None => None,
        };
        let seconds = section.timeout.unwrap_or(TIMEOUT);
        let settings = ApiSettings {
            auth: section.auth.clone(),
            headers: section.headers.clone(),
            reach,
            pages: section.pages.unwrap_or(1),
            timeout: Duration::from_secs_f64(seconds),
            max_output: section.max_output,
            select: section
                .select
                .iter()
                .map(|(pattern, pointer)| (Patterns::new([pattern]), pointer.clone()))
                .collect(),
        };
        let (tools, left_out) = ApiClient::tools(api, settings, environment.clone(), proxies.clone())?;
        Ok(ServerTools { tools, left_out, suspended: Vec::new(), source: None })
    }
}

/// The text of a document.
fn read(path: &Path) -> Result<String, ToolError> {
    use std::io::Read as _;
    let failed = |error: std::io::Error| {
        let error = ToolError::of(ErrorKind::FileNotFound, format!("`{}`: {error}", path.display()));
        error.hint("paths of OpenAPI documents are relative to the tool file that imports them")
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ToolError::invalid(format!("`{}` is not a file", path.display())));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}
