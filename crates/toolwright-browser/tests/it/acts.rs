//! Acting on pages: forms, differences, waiting, dialogs, tabs, files, and what approvers see.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright_browser::{BrowserOptions, browser_tools};
use toolwright_core::{ApprovalRequest, Approver, Decision, Sandbox as _};
use toolwright_runtime::Policy;

use crate::browser::{Surfer, reference};
use crate::server::{Answer, Server};

pub fn cases() -> Vec<crate::browser::Case> {
    crate::cases!["acts":
        a_form_is_filled_and_sent_in_one_call,
        an_action_shows_what_it_changed_and_nothing_else,
        an_element_that_was_replaced_is_never_another,
        a_recycled_element_is_not_touched,
        what_covers_an_element_is_named,
        a_click_waits_for_what_it_loads,
        dialogs_are_answered_and_reported,
        a_link_to_a_new_tab_leads_there,
        tabs_are_bounded,
        downloads_and_uploads_go_through_the_sandbox,
        keys_scrolling_hovering_and_dragging_reach_the_page,
        mistakes_in_steps_are_found_before_the_first_is_made,
        approvers_see_facts_and_rules_judge_them,
        every_kind_of_field_takes_its_value,
    ]
}

async fn a_form_is_filled_and_sent_in_one_call() {
    let server = Server::start(|method, _, body| match method {
        "POST" => Answer::html(format!("<title>Done</title><p>got {}", body.replace('&', " "))),
        _ => Answer::html(
            "<form method=post><label>User <input name=user value=old></label><label>Text <textarea name=text></textarea></label>\
             <label><input type=checkbox name=agree> Agree</label><select name=c><option>Red<option>Blue</select>\
             <input type=radio name=r value=1 aria-label=One><input type=radio name=r value=2 aria-label=Two><button>Go on</button></form>",
        ),
    })
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let at = |name: &str| reference(&page, name);
    let checkbox = page.split("[c").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let fields: Vec<&str> =
        page.match_indices("[i").map(|(at, _)| page[at + 1..].split([' ', ']']).next().unwrap()).collect();
    let done = surfer
        .act(json!([
            {"do": "fill", "ref": fields[0], "text": "Zoë"},
            {"do": "fill", "ref": fields[1], "text": "two\nlines"},
            {"do": "check", "ref": format!("c{checkbox}")},
            {"do": "select", "ref": at("of Red, Blue"), "text": "blue"},
            {"do": "check", "ref": at("Two")},
            {"do": "click", "ref": at("Go on")},
        ]))
        .await;
    assert!(done.contains("Done |"), "the next page is shown: {done}");
    assert!(done.contains("got user=Zo%C3%AB text=two%0D%0Alines agree=on c=Blue r=2"), "{done}");
}

async fn an_action_shows_what_it_changed_and_nothing_else() {
    let server = Server::page(
        "<p>same text</p><button onclick=\"this.textContent = 'Count ' + ++n; p.remove(); document.body.insertAdjacentHTML('beforeend', '<p>more')\">Count 0</button>\
         <p id=p>goes away</p><script>let n = 0</script>",
    )
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let changed = surfer.act(json!([{"do": "click", "ref": reference(&page, "Count 0")}])).await;
    let lines: Vec<&str> = changed.lines().skip(1).collect();
    assert_eq!(
        lines[..4],
        ["clicked button \"Count 0\"", "- goes away", "~ [b1 Count 1]", "+ more"],
        "{changed}"
    );
    let again = surfer.act(json!([{"do": "hover", "ref": "b1"}])).await;
    assert!(again.contains("the text of the page did not change"), "{again}");
}

async fn an_element_that_was_replaced_is_never_another() {
    let server = Server::page(
        "<div id=list></div><p id=log></p><script>\
         function draw() { const names = [...'ABCDEFGHIJKL'].sort(() => Math.random() - 0.5);\
           list.innerHTML = names.map((n) => `<button onclick=\"log.textContent += ' hit${n}'\">Item ${n}</button>`).join(''); }\
         function mutate() { const b = list.children; const i = Math.floor(Math.random() * b.length); const k = Math.random();\
           if (k < 0.3) draw(); else if (k < 0.5) list.prepend(list.lastChild); else if (k < 0.7) b[i].replaceWith(b[i].cloneNode(true));\
           else if (k < 0.85) b[i].remove(); else list.prepend(Object.assign(document.createElement('button'), {textContent: 'New', onclick: () => { log.textContent += ' hitNew'; }})); }\
         draw(); document.addEventListener('mousemove', () => { if (armed) { armed = false; mutate(); } }); let armed = false;</script>",
    )
    .await;
    let surfer = Surfer::new(&server).await;
    for _ in 0..8 {
        let page = surfer.open(&server, "/").await;
        for item in 'A'..='L' {
            let name = format!("Item {item}");
            let target = reference(&page, &name);
            let result = surfer.call("browser_act", json!({"steps": [{"do": "click", "ref": target}]})).await;
            let text = match &result.error {
                None => result.to_text(),
                Some(error) => {
                    assert!(error.message.contains("is gone"), "{}", error.message);
                    continue;
                }
            };
            assert!(text.contains(&format!("clicked button \"{name}\"")), "{text}");
            let hit = text.lines().find(|line| line.starts_with("+ ") && line.contains("hit"));
            let hit = hit.and_then(|line| line.rsplit(' ').next());
            assert!(hit.is_none_or(|hit| hit == format!("hit{item}")), "{text}");
        }
    }
}

async fn a_recycled_element_is_not_touched() {
    let server = Server::page(
        "<button id=b onclick=\"log.textContent='deleted'\">Open A</button><p id=log></p>\
         <script>setTimeout(() => { b.textContent = 'Delete B' }, 3000)</script>",
    )
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let button = reference(&page, "Open A");
    surfer.act(json!([{"do": "wait", "text": "3.5"}])).await;
    let shown = surfer.act(json!([{"do": "click", "ref": button}])).await;
    assert!(shown.contains("clicked button \"Delete B\""), "the wait has shown its new name: {shown}");

    let page = surfer.open(&server, "/again").await;
    let button = reference(&page, "Open A");
    tokio::time::sleep(std::time::Duration::from_millis(4000)).await;
    let error = surfer.error("browser_act", json!({"steps": [{"do": "click", "ref": button}]})).await;
    assert!(error.contains("was \"Open A\" and is \"Delete B\" now"), "{error}");
    assert!(!surfer.text("browser_read", json!({})).await.contains("deleted"));
}

async fn what_covers_an_element_is_named() {
    let server = Server::page(
        "<button onclick=\"log.textContent='bought'\">Order</button><p id=log></p>\
         <div id=banner style='position:fixed;inset:0;background:#eee'>We use cookies <button onclick='banner.remove()'>No thanks</button></div>",
    )
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let order = reference(&page, "Order");
    let error = surfer.error("browser_act", json!({"steps": [{"do": "click", "ref": order}]})).await;
    assert!(error.contains("covered by div#banner") && error.contains("No thanks]"), "{error}");
    surfer
        .act(json!([{"do": "click", "ref": reference(&error, "No thanks")}, {"do": "click", "ref": order}]))
        .await;
    assert!(surfer.text("browser_read", json!({})).await.contains("bought"));
}

async fn a_click_waits_for_what_it_loads() {
    let server = Server::start(|_, path, _| match path {
        "/" => Answer::html(
            "<button onclick=\"fetch('/slow').then(r => r.text()).then(t => { document.body.append(t) })\">Fetch</button>\
             <a href=/late>Late</a> <a href=/redirect>Redirect</a>\
             <a href=/spa onclick=\"event.preventDefault(); history.pushState(0, '', '/spa'); document.title = 'SPA'; document.body.insertAdjacentHTML('beforeend', '<p>the route');\">Route</a>\
             <script>fetch('/never')</script>",
        ),
        "/never" => Answer { delay: 60_000, ..Answer::html("") },
        "/slow" => Answer { delay: 600, ..Answer::html("slow-answer") },
        "/late" => Answer { delay: 700, ..Answer::html("<p>late-page") },
        "/redirect" => Answer { status: "302 Found", headers: "location: /late\r\n".into(), body: String::new(), delay: 200 },
        _ => Answer::html("other"),
    })
    .await;
    let surfer = Surfer::new(&server).await;
    for _ in 0..5 {
        let page = surfer.open(&server, "/").await;
        let click = |name: &str| json!([{"do": "click", "ref": reference(&page, name)}]);
        let route = surfer.act(click("Route")).await;
        assert!(route.contains("+ the route"), "{route}");
        let fetched = surfer.act(click("Fetch")).await;
        assert!(fetched.contains("slow-answer"), "{fetched}");
        let late = surfer.act(click("Late")).await;
        assert!(late.contains("late-page"), "{late}");
        let page = surfer.open(&server, "/").await;
        let redirected = surfer.act(json!([{"do": "click", "ref": reference(&page, "Redirect")}])).await;
        assert!(redirected.contains("late-page"), "{redirected}");
    }
}

async fn dialogs_are_answered_and_reported() {
    let server = Server::page(
        "<button onclick=\"log.textContent = confirm('Sure?') ? 'yes' : 'no'\">Ask</button>\
         <button onclick=\"log.textContent = 'name ' + prompt('Who?')\">Prompt</button>\
         <button onclick=\"alert('Note'); log.textContent = 'after'\">Alert</button><p id=log></p>",
    )
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let step =
        |name: &str, dialog: Value| json!([{"do": "click", "ref": reference(&page, name), "dialog": dialog}]);
    let no = surfer.act(json!([{"do": "click", "ref": reference(&page, "Ask")}])).await;
    assert!(no.contains("dialog (confirm) \"Sure?\": dismissed") && no.contains("+ no"), "{no}");
    let yes = surfer.act(step("Ask", json!("accept"))).await;
    assert!(yes.contains("accepted") && yes.contains("+ yes"), "{yes}");
    let named = surfer.act(step("Prompt", json!("Ada"))).await;
    assert!(named.contains("name Ada"), "{named}");
    let alert = surfer.act(json!([{"do": "click", "ref": reference(&page, "Alert")}])).await;
    assert!(alert.contains("dialog (alert) \"Note\"") && alert.contains("after"), "{alert}");
}

async fn a_link_to_a_new_tab_leads_there() {
    let server = Server::start(|_, path, _| match path {
        "/" => Answer::html("<title>First</title><a href=/second target=_blank>Open</a>"),
        _ => Answer::html("<title>Second</title><p>the second page <button>Two</button>"),
    })
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let opened = surfer.act(json!([{"do": "click", "ref": reference(&page, "Open")}])).await;
    assert!(opened.contains("opened tab 2: \"http") && opened.contains("the second page"), "{opened}");
    let tabs = surfer.text("browser_tabs", json!({})).await;
    assert!(tabs.contains("tab 1: First") && tabs.contains("tab 2 (current): Second"), "{tabs}");
    let back = surfer.text("browser_tabs", json!({"action": "switch", "tab": 1})).await;
    assert!(back.contains("First |"), "{back}");
    let other = surfer.act(json!([{"do": "click", "ref": reference(&opened, "Two")}])).await;
    assert!(other.contains("clicked button \"Two\""), "a reference leads to its own tab: {other}");
    let left = surfer.text("browser_tabs", json!({"action": "close", "tab": 2})).await;
    assert!(left.contains("tab 1 (current)") && !left.contains("tab 2"), "{left}");
    assert!(surfer.error("browser_tabs", json!({"action": "switch", "tab": 9})).await.contains("no tab 9"));
}

async fn tabs_are_bounded() {
    let server =
        Server::page("<button onclick=\"for (let i = 0; i < 30; i++) open('/x' + i)\">Storm</button>").await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    surfer.act(json!([{"do": "click", "ref": reference(&page, "Storm")}])).await;
    let tabs = surfer.text("browser_tabs", json!({})).await;
    assert!(tabs.matches("\ntab ").count() <= 8, "{tabs}");
}

async fn downloads_and_uploads_go_through_the_sandbox() {
    let server = Server::start(|method, path, body| match (method, path) {
        ("POST", _) => Answer::html(format!("<p>received {}", body.contains("from the sandbox"))),
        (_, "/file") => Answer {
            status: "200 OK",
            headers: "content-type: application/octet-stream\r\ncontent-disposition: attachment; filename=report.csv\r\n".into(),
            body: "a,b\n1,2\n".into(),
            delay: 0,
        },
        _ => Answer::html(
            "<a href=/file>Get</a><form method=post enctype=multipart/form-data><input type=file name=f aria-label=Upload><button>Send it</button></form>",
        ),
    })
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let got = surfer
        .act(json!([{"do": "click", "ref": reference(&page, "Get")}, {"do": "wait", "text": "0.5"}]))
        .await;
    assert!(got.contains("downloaded 8 bytes to"), "{got}");
    let path = got.split("bytes to \"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(surfer.sandbox.read_text(path).await.unwrap(), "a,b\n1,2\n");

    surfer.sandbox.write_file("note.txt", b"from the sandbox").await.unwrap();
    let upload = reference(&page, "Upload");
    let sent = surfer
        .act(json!([{"do": "upload", "ref": upload, "text": "note.txt"}, {"do": "click", "ref": reference(&page, "Send it")}]))
        .await;
    assert!(sent.contains("received true"), "{sent}");
    surfer.open(&server, "/").await;
    let page = surfer.text("browser_read", json!({})).await;
    let upload = reference(&page, "Upload");
    let error = surfer
        .error("browser_act", json!({"steps": [{"do": "upload", "ref": upload, "text": "missing.txt"}]}))
        .await;
    assert!(error.contains("missing.txt"), "{error}");
}

async fn keys_scrolling_hovering_and_dragging_reach_the_page() {
    let server = Server::page(
        "<input aria-label=Field onkeydown=\"keys.textContent += ' ' + event.key\"><p id=keys></p>\
         <div id=h style='width:80px' onclick=1 onmouseenter=\"keys.textContent += ' hover'\">Menu</div>\
         <div id=a onclick=1 onmousedown=\"keys.textContent += ' down'\">Drag</div><div id=z onclick=1 onmouseup=\"keys.textContent += ' dropped'\">Drop</div>\
         <div style='height:3000px'></div><p>bottom line",
    )
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let at = |name: &str| reference(&page, name);
    let done = surfer
        .act(json!([
            {"do": "type", "ref": at("Field"), "text": "aé"},
            {"do": "press", "ref": at("Field"), "text": "Control+A"},
            {"do": "press", "text": "Backspace"},
            {"do": "hover", "ref": at("Menu")},
            {"do": "drag", "ref": at("Drag"), "to": at("Drop")},
        ]))
        .await;
    assert!(
        done.contains("a Control a Backspace hover down dropped")
            || done.contains("a Control A Backspace hover down dropped"),
        "{done}"
    );
    assert!(surfer.text("browser_read", json!({})).await.contains("Field: \"\""), "select all and delete");
    let scrolled = surfer
        .act(
            json!([{"do": "scroll"}, {"do": "scroll"}, {"do": "scroll"}, {"do": "scroll"}, {"do": "scroll"}]),
        )
        .await;
    assert!(scrolled.contains("bottom line") && scrolled.contains("any further"), "{scrolled}");
}

async fn mistakes_in_steps_are_found_before_the_first_is_made() {
    let server = Server::page(
        "<button onclick=\"document.body.append('clicked')\">Go</button><input aria-label=Name readonly>",
    )
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let go = reference(&page, "Go");
    for (wrong, why) in [
        (json!({"do": "press", "text": "Nokey"}), "there is no key"),
        (json!({"do": "fill", "text": "x"}), "needs `ref`"),
        (json!({"do": "fill", "ref": "i2"}), "needs `text`"),
        (json!({"do": "click"}), "needs either"),
        (json!({"do": "scroll", "text": "sideways"}), "scroll"),
        (json!({"do": "fly"}), "fly"),
    ] {
        let error = surfer.error("browser_act", json!({"steps": [{"do": "click", "ref": go}, wrong]})).await;
        assert!(error.contains(why), "{error}");
    }
    assert!(!surfer.text("browser_read", json!({})).await.contains("clicked"));
    let name = reference(&page, "Name");
    let result = surfer.call("browser_act", json!({"steps": [{"do": "click", "ref": go}, {"do": "fill", "ref": name, "text": "x"}, {"do": "click", "ref": go}]})).await;
    let error = result.error.clone().unwrap();
    assert!(error.message.contains("step 2") && error.message.contains("read-only"), "{}", error.message);
    assert!(
        result.to_text().contains("clicked button"),
        "what was done before is shown: {}",
        result.to_text()
    );
}

struct Witness(Arc<Mutex<Vec<Value>>>);

impl Approver for Witness {
    fn name(&self) -> &str {
        "witness"
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        self.0.lock().unwrap().push(request.call.arguments.clone());
        Decision::reject("not today")
    }
}

async fn approvers_see_facts_and_rules_judge_them() {
    let server = Server::page(
        "<title>Shop</title><form action=/order method=post><input name=n aria-label=Note><button>Buy now</button></form>\
         <button onclick=\"document.body.append('searched')\">Search</button>",
    )
    .await;
    let policy = "- tools: browser_step\n  when: {risk: financial_transactions}\n  decision: escalate\n- tools: '*'\n  decision: approve\n";
    let seen = Arc::new(Mutex::new(Vec::new()));
    let witness = Witness(seen.clone());
    let tools = browser_tools(&BrowserOptions::new()).unwrap();
    let surfer = Surfer::with(&server, tools, |builder| {
        builder.policy(Policy::from_yaml(policy).unwrap()).approver(witness)
    })
    .await;
    let page = surfer.open(&server, "/").await;
    let searched = surfer.act(json!([{"do": "click", "ref": reference(&page, "Search")}])).await;
    assert!(searched.contains("searched"), "{searched}");
    let error = surfer
        .error("browser_act", json!({"steps": [{"do": "click", "ref": reference(&page, "Buy now")}]}))
        .await;
    assert!(error.contains("not today"), "{error}");
    assert!(!server.seen("POST /order"));
    let seen = seen.lock().unwrap().clone();
    let host = format!("127.0.0.1:{}", server.port);
    assert_eq!(
        seen,
        [json!({"action": "click", "host": host, "element": "button \"Buy now\"", "page": "Shop",
            "risk": "financial_transactions", "goes_to": server.url("/order")})]
    );
    let alone = surfer.error("browser_step", json!({"action": "click"})).await;
    assert!(alone.contains("browser_step"), "it is no tool of the model: {alone}");
}

async fn every_kind_of_field_takes_its_value() {
    let server = Server::page(
        "<input type=date aria-label=Day><input type=range min=0 max=10 aria-label=Level><input type=number aria-label=Count>\
         <div contenteditable aria-label=Note>old</div><input type=color aria-label=Tint><textarea aria-label=Long>x</textarea>\
         <input maxlength=3 aria-label=Short><input type=email aria-label=Mail>",
    )
    .await;
    let surfer = Surfer::new(&server).await;
    let page = surfer.open(&server, "/").await;
    let fill = |name: &str, text: &str| json!({"do": "fill", "ref": reference(&page, name), "text": text});
    let done = surfer
        .act(json!([
            fill("Day", "2026-02-03"),
            fill("Level", "7"),
            fill("Count", "42"),
            fill("Note", "new note"),
            fill("Tint", "#ff0000"),
            fill("Long", ""),
            fill("Short", "abcdef"),
            fill("Mail", "a@b.example"),
        ]))
        .await;
    assert!(done.contains("it holds \"abc\" now"), "{done}");
    let page = surfer.text("browser_read", json!({})).await;
    for wanted in [
        "date \"2026-02-03\"",
        "range \"7\"",
        "number \"42\"",
        "new note",
        "color \"#ff0000\"",
        "Long: \"\"",
        "email \"a@b.example\"",
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    let day = reference(&page, "Day");
    let error =
        surfer.error("browser_act", json!({"steps": [{"do": "fill", "ref": day, "text": "tomorrow"}]})).await;
    assert!(error.contains("it takes a date"), "{error}");
}
