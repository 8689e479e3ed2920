//! Search results as anthropic-tools writes them into a prompt.

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    /// Where it was found.
    pub source: String,
    /// What was found.
    pub content: String,
}

/// Search results, numbered from 1.
pub fn format_search_results(results: &[SearchResult]) -> String {
    let items = results.iter().zip(1..).map(|(result, number)| {
        format!(
            "<item index=\"{number}\">\n<source>{}</source>\n<page_content>\n{}\n</page_content>\n</item>",
            result.source, result.content
        )
    });
    format!("\n<search_results>\n{}\n</search_results>", items.collect::<Vec<_>>().join("\n"))
}
