//! The display itself: screenshots, coordinates, decisions, and its end.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_core::{ApprovalRequest, Approver, Decision};
use toolwright_desktop::DesktopOptions;
use toolwright_runtime::Policy;

use crate::desk::{Case, Desk, picture};

pub fn cases() -> Vec<Case> {
    crate::cases!("screen":
        a_screenshot_has_the_size_that_was_set_and_shows_the_pointer,
        the_pointer_is_where_it_was_moved_to,
        a_part_of_the_screen_is_shown_larger,
        a_large_screen_is_shown_smaller_and_clicked_in_the_same_place,
        wrong_arguments_are_errors_before_anything_is_done,
        a_question_of_the_vendor_is_decided_before_anything_is_done,
        a_desktop_that_ended_is_started_again,
        nothing_is_left_when_the_run_is_over,
        a_program_that_is_not_there_is_an_error,
        calls_are_quick,
    )
}

async fn a_screenshot_has_the_size_that_was_set_and_shows_the_pointer() {
    let desk = Desk::with(&DesktopOptions::new().size(640, 480).unwrap(), |builder| builder).await;
    let empty = picture(&desk.act(json!({"action": "screenshot"})).await, "empty");
    assert_eq!(empty.dimensions(), (640, 480));
    let moved = desk.act(json!({"action": "mouse_move", "coordinate": [100, 50]})).await;
    assert_eq!(moved.extras.as_ref().unwrap()["trust"], "external");
    let moved = picture(&moved, "pointer");
    let differs = |x: u32, y: u32| moved.get_pixel(x, y) != empty.get_pixel(x, y);
    let around = (90..120).flat_map(|x| (40..70).map(move |y| (x, y)));
    assert!(around.filter(|(x, y)| differs(*x, *y)).count() > 10, "the pointer is drawn where it is");
    let again = desk.text(json!({"action": "screenshot"})).await;
    assert_eq!(again, "(the screen did not change)");
}

async fn the_pointer_is_where_it_was_moved_to() {
    let desk = Desk::new().await;
    for (x, y) in [(0, 0), (100, 200), (1279, 799)] {
        desk.act(json!({"action": "mouse_move", "coordinate": [x, y]})).await;
        assert_eq!(desk.text(json!({"action": "cursor_position"})).await, format!("X={x},Y={y}"));
    }
    let error = desk.error("computer", json!({"action": "mouse_move", "coordinate": [1280, 0]})).await;
    assert!(error.contains("1280 x 800"), "{error}");
    let result = desk.call("computer", json!({"action": "left_click", "coordinate": [-1, 0]})).await;
    assert!(result.error.is_some());
    assert_eq!(picture(&result, "failed").dimensions(), (1280, 800), "a failure shows the screen too");
}

async fn a_part_of_the_screen_is_shown_larger() {
    let desk = Desk::new().await;
    let zoomed = desk.act(json!({"action": "zoom", "region": [0, 0, 320, 100]})).await;
    assert_eq!(picture(&zoomed, "zoomed").dimensions(), (1280, 400));
}

async fn a_large_screen_is_shown_smaller_and_clicked_in_the_same_place() {
    let desk = Desk::with(&DesktopOptions::new().size(2048, 1536).unwrap(), |builder| builder).await;
    let shown = picture(&desk.act(json!({"action": "screenshot"})).await, "large");
    let (width, height) = shown.dimensions();
    assert!(width < 1300 && height < 1000, "{width} x {height}");
    desk.act(json!({"action": "mouse_move", "coordinate": [width / 2, height / 2]})).await;
    let expected = format!("X={},Y={}", width / 2, height / 2);
    assert_eq!(desk.text(json!({"action": "cursor_position"})).await, expected);
}

async fn wrong_arguments_are_errors_before_anything_is_done() {
    let desk = Desk::new().await;
    let error = desk
        .error(
            "computer",
            json!({"actions": [{"action": "mouse_move", "coordinate": [5, 5]}, {"action": "fly"}]}),
        )
        .await;
    assert!(error.starts_with("Invalid action: fly"), "{error}");
    for (arguments, expected) in [
        (json!({}), "action must be provided"),
        (json!({"actions": []}), "1 to 100"),
        (json!({"action": "wait", "duration": 1, "actions": [{"action": "screenshot"}]}), "not both"),
        (json!({"action": "key", "text": "Bogus_Key"}), "no key `Bogus_Key`"),
        (json!({"action": "type", "text": "a\u{7}b"}), "control character"),
        (json!({"actions": [{"action": "screenshot", "x": 1}]}), "unknown field"),
    ] {
        let error = desk.error("computer", arguments).await;
        assert!(error.contains(expected), "{error}");
    }
    let error = desk
        .error(
            "computer",
            json!({"actions": [{"action": "mouse_move", "coordinate": [5, 6]},
            {"action": "left_click", "coordinate": [5000, 5]}, {"action": "screenshot"}]}),
        )
        .await;
    assert!(error.starts_with("action 2:") && error.contains("1 actions after it were not done"), "{error}");
    assert_eq!(desk.text(json!({"action": "cursor_position"})).await, "X=5,Y=6");
}

/// Notes what it is asked, and says no or yes.
struct Witness(Arc<Mutex<Vec<Value>>>, bool);

impl Approver for Witness {
    fn name(&self) -> &str {
        "witness"
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        self.0.lock().unwrap().push(request.call.arguments.clone());
        if self.1 { Decision::Approve } else { Decision::reject("not today") }
    }
}

async fn a_question_of_the_vendor_is_decided_before_anything_is_done() {
    let actions = json!({"actions": [
        {"action": "mouse_move", "coordinate": [7, 8]},
        {"action": "confirm", "code": "financial_transactions", "message": "Pay 10 EUR?"},
    ]});
    for answer in [false, true] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let witness = Witness(asked.clone(), answer);
        let policy = "- tools: computer_confirm\n  decision: escalate\n- tools: '*'\n  decision: approve\n";
        let policy = Policy::from_yaml(policy).unwrap();
        let desk =
            Desk::with(&DesktopOptions::new(), |builder| builder.policy(policy).approver(witness)).await;
        let result = desk.call("computer", actions.clone()).await;
        let question = json!({"message": "Pay 10 EUR?", "risk": "financial_transactions", "actions": 1});
        assert_eq!(*asked.lock().unwrap(), [question]);
        assert_eq!(result.error.is_none(), answer, "{:?}", result.error);
        let place = desk.text(json!({"action": "cursor_position"})).await;
        assert_eq!(place == "X=7,Y=8", answer, "{place}");
    }
}

async fn a_desktop_that_ended_is_started_again() {
    let desk = Desk::new().await;
    desk.act(json!({"action": "mouse_move", "coordinate": [3, 4]})).await;
    let processes = processes(&mark(&desk).await);
    assert!(!processes.is_empty());
    for process in processes {
        std::process::Command::new("kill").args(["-9", &process]).status().unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let result = desk.act(json!({"action": "screenshot"})).await;
    assert_eq!(picture(&result, "again").dimensions(), (1280, 800));
    assert_ne!(desk.text(json!({"action": "cursor_position"})).await, "X=3,Y=4", "it is another one");
}

async fn nothing_is_left_when_the_run_is_over() {
    let desk = Desk::new().await;
    desk.start("xterm").await;
    let mark = mark(&desk).await;
    assert!(processes(&mark).len() > 2, "{:?}", processes(&mark));
    drop(desk);
    let mut left = processes(&mark);
    for _ in 0..100 {
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        left = processes(&mark);
    }
    assert!(left.is_empty(), "{left:?}");
}

/// What the processes of a desktop have in their environment or arguments, and no others.
async fn mark(desk: &Desk) -> String {
    desk.start("printf %s \"$XAUTHORITY\" >authority.txt").await;
    desk.file("authority.txt", "").await
}

/// The processes of the machine with this mark.
fn processes(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        let holds = |file: &str| {
            let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains(mark)
        };
        if id.bytes().all(|byte| byte.is_ascii_digit()) && (holds("cmdline") || holds("environ")) {
            found.push(id);
        }
    }
    found
}

async fn a_program_that_is_not_there_is_an_error() {
    let desk = Desk::new().await;
    let error = desk.error("desktop_start", json!({"command": "no-such-program --x"})).await;
    assert!(error.contains("code 127") && error.contains("not installed"), "{error}");
}

async fn calls_are_quick() {
    let desk = Desk::new().await;
    desk.act(json!({"action": "screenshot"})).await;
    let begun = Instant::now();
    for _ in 0..10 {
        desk.act(json!({"action": "screenshot"})).await;
    }
    let each = begun.elapsed() / 10;
    eprintln!("a screenshot takes {each:?}, of which 80 ms are waiting");
    assert!(each < Duration::from_millis(800), "{each:?}");
}
