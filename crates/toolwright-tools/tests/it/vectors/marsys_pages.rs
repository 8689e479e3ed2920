//! Pages of documents with the parameters and shapes they have in MARSYS: the words and the pictures must be
//! those that were seen there, in the order of the page.

use serde_json::{Value, json};
use toolwright_core::{Content, ErrorKind, ToolResult};
use toolwright_tools::resolve;

use super::{Vector, finish, tally, to_run};
use crate::paper::Paper;
use crate::support::{Backend, Bench, cases, value_of};

cases![
    pages_hold_the_words_and_pictures_they_hold_in_marsys,
    chunks_are_ordered_as_its_documents_say,
    sections_of_a_document_can_be_read,
    searches_look_into_documents,
    any_file_can_be_read_smartly,
    pages_that_are_too_many_or_missing_are_errors,
];

const TOOLS: [&str; 5] =
    ["read_file", "get_file_structure", "read_section", "search_files", "smart_read_file"];

/// The papers of the observations, written anew.
async fn bench(backend: Backend) -> Bench {
    let bench = Bench::of(backend, TOOLS.map(|name| resolve(&format!("marsys.{name}")).unwrap())).await;
    let mut text12 = Paper::new();
    for page in 1..=12 {
        text12.page();
        let mut y = 780.0;
        if page % 4 == 1 {
            text12.text(60.0, y, 24.0, &format!("Part {}", page / 4 + 1));
            y -= 50.0;
        }
        text12.text(60.0, y, 18.0, &format!("Chapter {page}"));
        for paragraph in 1..=3 {
            y -= 40.0;
            text12.text(60.0, y, 11.0, &format!("Page {page} paragraph {paragraph} body text."));
        }
    }
    bench.write("text12.pdf", text12.bytes());
    let mut mixed = Paper::new();
    mixed.page().text(60.0, 780.0, 11.0, "Above the figure.");
    mixed.image_of((800, 600), 60.0, 560.0, 240.0, 180.0);
    mixed.text(60.0, 540.0, 11.0, "Caption: Figure 1.");
    mixed.image_of((100, 50), 60.0, 400.0, 200.0, 100.0);
    mixed.text(60.0, 360.0, 11.0, "Below the second figure.");
    bench.write("mixed1.pdf", mixed.bytes());
    let mut images = Paper::new();
    for page in 1..=6 {
        images.page().text(60.0, 780.0, 11.0, &format!("Figure page {page}"));
        images.image_of((100 * page, 75 * page), 60.0, 500.0, 300.0, 225.0);
    }
    bench.write("images6.pdf", images.bytes());
    let mut thumbs = Paper::new();
    thumbs.page().text(60.0, 800.0, 11.0, "Fourteen thumbnails");
    for at in 0..14u16 {
        let (column, row) = (f32::from(at % 4), f32::from(at / 4));
        thumbs.image_of((20, 20), 60.0 + column * 100.0, 700.0 - row * 100.0, 60.0, 60.0);
    }
    bench.write("thumbs14.pdf", thumbs.bytes());
    let mut only = Paper::new();
    only.page().image_of((300, 200), 60.0, 400.0, 300.0, 200.0);
    only.page();
    bench.write("imageonly.pdf", only.bytes());
    let mut outline = Paper::new();
    for section in 1..=3 {
        outline.page().text(60.0, 780.0, 11.0, &format!("Section {section} text"));
    }
    bench.write("outline3.pdf", outline.bytes());
    let mut plain = Paper::new();
    plain.page().text(60.0, 780.0, 11.0, "ReportLab text line").image_of((120, 80), 50.0, 600.0, 120.0, 80.0);
    bench.write("reportlab1.pdf", plain.bytes());
    bench.write("broken.pdf", "%PDF-1.4\nnot one\n");
    bench
}

/// The words without marks of pages and pictures.
fn words(text: &str) -> Vec<String> {
    let kept = text.lines().filter(|line| !line.starts_with("--- Page ") && !line.starts_with("[IMAGE "));
    kept.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// Words and the number of pictures of what was seen there.
fn observed(response: &Value) -> (Vec<String>, usize) {
    match &response["content"] {
        Value::Array(blocks) => {
            let text =
                blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n");
            (words(&text), blocks.iter().filter(|block| block["type"] == "image_url").count())
        }
        content => (words(content["content"].as_str().unwrap()), 0),
    }
}

fn pictures(result: &ToolResult) -> usize {
    result.content.iter().filter(|block| matches!(block, Content::Image(_))).count()
}

/// Titles, pages and levels of a tree of sections.
fn tree(sections: &Value) -> Vec<(String, u64, u64, u64)> {
    let mut all = Vec::new();
    for section in sections.as_array().into_iter().flatten() {
        let number = |name: &str| section[name].as_u64().unwrap();
        let id = section["id"].as_str().unwrap().to_owned() + section["title"].as_str().unwrap();
        all.push((id, number("level"), number("start_page"), number("end_page")));
        all.extend(tree(&section["children"]));
    }
    all
}

async fn pages_hold_the_words_and_pictures_they_hold_in_marsys(backend: Backend) {
    let bench = bench(backend).await;
    let mut tally = tally();
    let is_one = |vector: &Vector| vector.id.starts_with("file/") && vector.id.contains("pdf");
    for vector in to_run("marsys/tools").into_iter().filter(is_one) {
        let tool = vector.given["tool"].as_str().unwrap();
        let mut arguments = vector.given["args"].clone();
        if tool == "get_file_structure" {
            let got = bench.value(tool, arguments).await;
            let wanted = &vector.observed["ok"];
            tally.check(
                &vector.id,
                &(&wanted["type"], tree(&wanted["sections"])),
                &(&got["type"], tree(&got["sections"])),
            );
            continue;
        }
        // There the pictures are given unless a call says no; its documents say the contrary.
        if arguments["extract_images"].is_null() {
            arguments["extract_images"] = json!(true);
        }
        let result = bench.call(tool, arguments).await;
        let Some(response) = vector.observed["ok"].get("$ToolResponse") else {
            tally.check(&vector.id, &true, &result.error.is_some());
            continue;
        };
        assert!(result.error.is_none(), "{}: {:?}", vector.id, result.error);
        let got = (words(value_of(&result)["content"].as_str().unwrap()), pictures(&result));
        tally.check(&vector.id, &observed(response), &got);
    }
    finish(&tally);
}

async fn chunks_are_ordered_as_its_documents_say(backend: Backend) {
    let bench = bench(backend).await;
    let read = json!({"path": "mixed1.pdf", "extract_images": true});
    let result = bench.call("read_file", read).await;
    let told = value_of(&result);
    assert_eq!(
        told["metadata"]["ordered_chunks"],
        json!([
            {"type": "text", "text": "Above the figure.", "page": 1, "block_num": 0},
            {"type": "image", "image_index": 0, "page": 1, "block_num": 1, "dimensions": "800x600", "tokens": 640},
            {"type": "text", "text": "Caption: Figure 1.", "page": 1, "block_num": 2},
            {"type": "image", "image_index": 1, "page": 1, "block_num": 3, "dimensions": "100x50", "tokens": 256},
            {"type": "text", "text": "Below the second figure.", "page": 1, "block_num": 4},
        ])
    );
    assert_eq!(
        told["content"],
        "Above the figure.\n\n[IMAGE 1: 800x600, ~640 tokens, page 1]\n\nCaption: Figure 1.\n\n\
         [IMAGE 2: 100x50, ~256 tokens, page 1]\n\nBelow the second figure."
    );
    let facts = &told["metadata"];
    assert_eq!(
        (
            &facts["total_pages"],
            &facts["pages_read"],
            &facts["images_extracted"],
            &facts["total_image_tokens"]
        ),
        (&json!(1), &json!("1-1"), &json!(2), &json!(896))
    );
    let kinds: Vec<bool> = result.content.iter().map(|block| matches!(block, Content::Image(_))).collect();
    assert_eq!(kinds, [false, true, false, true, false]);
    let beside = |name: &str| result.metadata[name].clone();
    assert_eq!(
        ["path", "partial", "total_pages", "pages_shown", "has_images", "image_count", "total_image_tokens"]
            .map(beside),
        [json!("mixed1.pdf"), json!(false), json!(1), json!("1-1"), json!(true), json!(2), json!(896)]
    );
    // Its example reads six pages at once.
    let six = json!({"path": "text12.pdf", "start_page": 5, "end_page": 10});
    let six = bench.call("read_file", six).await;
    assert_eq!(value_of(&six)["metadata"]["pages_read"], "5-10");
    assert_eq!(pictures(&six), 0, "pictures are given when they are asked for");
    assert!(six.metadata["message"].as_str().unwrap().contains("pages 5-10 of 12"));
    let small = json!({"path": "images6.pdf", "start_page": 6, "extract_images": true, "max_pixels": 10_000, "provider": "openai"});
    let small = value_of(&bench.call("read_file", small).await);
    let chunk = &small["metadata"]["ordered_chunks"][1];
    assert_eq!((&chunk["dimensions"], &chunk["tokens"]), (&json!("115x86"), &json!(255)));
}

async fn sections_of_a_document_can_be_read(backend: Backend) {
    let bench = bench(backend).await;
    let section = json!({"path": "text12.pdf", "section_id": "section:2:3"});
    let read = bench.call("read_section", section).await;
    let words = "Chapter 3\n\nPage 3 paragraph 1 body text.\n\nPage 3 paragraph 2 body text.\n\nPage 3 paragraph 3 body text.";
    assert_eq!((read.to_text().as_str(), &read.metadata["page_range"]), (words, &json!([3, 3])));
    let missing = json!({"path": "text12.pdf", "section_id": "section:2:99"});
    assert!(bench.error("read_section", missing).await.1.contains("no section"));
    let outline = bench.value("read_file", json!({"path": "text12.pdf", "strategy": "progressive"})).await;
    assert!(outline["content"].as_str().unwrap().starts_with("- Part 1\n  - Chapter 1\n  - Chapter 2\n"));
    assert_eq!(outline["structure"]["metadata"]["total_sections"], 15);
    let overview = json!({"path": "text12.pdf", "start_page": 1, "end_page": 1, "include_overview": true});
    assert_eq!(bench.value("read_file", overview).await["overview"]["type"], "pdf");
    let full = bench.value("read_file", json!({"path": "text12.pdf", "strategy": "full"})).await;
    assert_eq!((&full["partial"], &full["metadata"]["pages_read"]), (&json!(false), &json!("1-12")));
}

async fn searches_look_into_documents(backend: Backend) {
    let bench = bench(backend).await;
    bench.write("notes.txt", "Page 7 is the best\n");
    let found = bench.value("search_files", json!({"query": "Page 7 "})).await;
    let places: Vec<String> = found["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| format!("{} {}", hit["file"].as_str().unwrap(), hit["location"].as_str().unwrap()))
        .collect();
    assert_eq!(
        places,
        [
            "notes.txt line 1",
            "text12.pdf page 7, line 2",
            "text12.pdf page 7, line 3",
            "text12.pdf page 7, line 4"
        ]
    );
    assert_eq!(found["matches"][1]["page"], 7);
    assert_eq!(found["metadata"]["documents_not_read"], 1, "broken.pdf is counted");
    let titled = json!({"query": "Chapter 1$", "search_type": "structure", "path": "text12.pdf"});
    let titled = bench.value("search_files", titled).await;
    assert_eq!(titled["matches"][0]["section_id"], "section:2:1");
}

async fn any_file_can_be_read_smartly(backend: Backend) {
    let bench = bench(backend).await;
    bench.write("a.txt", "plain\n");
    let paper = bench.call("smart_read_file", json!({"path": "mixed1.pdf"})).await;
    assert_eq!((pictures(&paper), paper.metadata["total_pages"].clone()), (2, json!(1)));
    assert_eq!(bench.value("smart_read_file", json!({"path": "/a.txt"})).await["content"], "plain\n");
}

async fn pages_that_are_too_many_or_missing_are_errors(backend: Backend) {
    let bench = bench(backend).await;
    for (first, last) in [(1, 21), (4, 2), (20, 22)] {
        let pages = json!({"path": "text12.pdf", "start_page": first, "end_page": last});
        assert_eq!(bench.error("read_file", pages).await.0, ErrorKind::Parsing, "{first}-{last}");
    }
    let last = bench.value("read_file", json!({"path": "text12.pdf", "end_page": 2})).await;
    assert_eq!(last["metadata"]["pages_read"], "1-2");
}
