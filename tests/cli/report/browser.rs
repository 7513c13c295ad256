//! A page in a real browser: it is accessible, and hostile text stays text.

use std::{path::Path, process::Command};

use serde_json::json;

use crate::support::{
    Env, json_lines,
    needs::{has, is_there},
};

/// This script prints the findings of axe.
const LOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/report/look.py");
const AXE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/target/axe/axe_playwright_python/axe.min.js"
);

/// Hostile texts with an effect; `@` is a number.
const HOSTILE: [&str; 12] = [
    "<script>window.pwned=@</script>",
    "<img src=x@ onerror=\"window.pwned=1\">",
    "\"><svg onload=window.pwned=@>",
    "' onmouseover='window.pwned=@' style='position:fixed",
    "</style></title><script>window.pwned=@</script>",
    "</main></body></html><iframe src=//pwned@.example>",
    "<!-- @",
    "<base href=http://pwned@.example/><link rel=stylesheet href=x>",
    "<meta http-equiv=refresh content=\"0;url=http://pwned@.example\">",
    "javascript:window.pwned=@",
    "\u{202e}@\u{2066}\u{200b}",
    "&lt;script&gt;@&#60;script&#62;",
];

/// Fills a board with hostile texts in every field, under 500 names.
fn hostile(env: &Env) {
    let text = |number: usize| {
        let text = HOSTILE[number % HOSTILE.len()];
        text.replace('@', &number.to_string())
    };
    let details =
        |number: usize| json!({"name": format!("job-{number}"), "details": {"text": text(number)}});
    let lines: String = (0..500)
        .map(|number| format!("{}\n", details(number)))
        .collect();
    let posted = env.jobboard(&["post", "--from", "-"]).stdin(lines).run();
    let posted: Vec<_> = posted.succeeded().lines().map(str::to_owned).collect();
    for job in &posted[..4] {
        env.claim(job, "ada");
    }
    let consumed = [
        &["consume", "--force", "--yes"][..],
        &[&posted[0], &posted[1]],
    ]
    .concat();
    env.ok(consumed);
    let failure = |number: usize| {
        json!([{
            "exit_code": null, "signal": null, "reason": text(number), "stdout": text(number + 1),
            "stderr": format!("{}\n{}", text(number + 2), text(number + 3)), "conductor": text(number + 4),
            "time": "2026-11-20T18:00:00Z",
        }])
    };
    let mut database = env.database();
    let change = database.transaction().unwrap();
    for number in 0..500 {
        let (name, owner) = (text(number), text(number + 5));
        let failures = failure(number).to_string();
        let parts = rusqlite::params![number as i64 + 1, name, owner.as_bytes(), failures];
        let owned = "UPDATE job SET name = ?2, failures = ?4,
            owner = CASE WHEN ?1 % 9 = 0 THEN ?3 END, claimed_on = CASE WHEN ?1 % 9 = 0 THEN created_on END
            WHERE sequence = ?1";
        change.execute(owned, parts).unwrap();
    }
    let past = "UPDATE past SET name = ?1";
    change.execute(past, [text(0)]).unwrap();
    change
        .execute("UPDATE event SET owner = ?1", [text(1).as_bytes()])
        .unwrap();
    change.commit().unwrap();
}

#[test]
fn pages_are_accessible_and_inert() {
    let is_ready = ["chromium", "python3"].into_iter().all(has);
    if !is_ready || !is_there("axe", Path::new(AXE).exists()) {
        return;
    }
    let (empty, usual, bad) = (Env::new(), Env::new(), Env::new());
    usual.post_many(30);
    usual.claim("@3", "ada");
    usual.trash("@4");
    usual.ok("consume @5 --force --yes");
    hostile(&bad);
    let pages = [&empty, &usual, &bad].map(|env| {
        env.ok("report board.html");
        env.file("board.html")
    });
    let look = Command::new("python3")
        .args([LOOK, AXE])
        .arg(empty.root())
        .args(&pages)
        .output()
        .unwrap();
    let expected = String::from_utf8_lossy(&look.stdout).into_owned();
    let errors = String::from_utf8_lossy(&look.stderr).into_owned();
    assert!(look.status.success(), "{errors}\n{expected}");
    let found = json_lines(&expected);
    assert_eq!(found.len(), pages.len(), "{errors}");
    for (found, page) in found.iter().zip(&pages) {
        let asked = format!("file://{}", page.display());
        assert_eq!(found["requests"], json!([asked]));
        assert_eq!(found["messages"], json!([]));
        let nothing = json!({"pwned": "undefined", "elements": 0, "handlers": 0});
        assert_eq!(found["acted"], nothing);
        assert_eq!(found["wide"], json!([0, 0, 0, 0]), "wider than the screen");
        assert_eq!((&found["light"], &found["dark"]), (&json!([]), &json!([])));
        assert_eq!(found["pdf"], true);
    }
}
