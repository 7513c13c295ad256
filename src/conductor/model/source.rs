//! Maps the model's steps to functions of the program, and detects changes of these.

use std::{fs, path::Path};

use uuid::Uuid;

use crate::tests::rows;

/// Step, file, functions and their digest. A script without functions counts as a whole.
const SOURCES: &str = r"
    a claim is served => board/redis/write/scripts/claim.lua => all => ec844764
    a renewal is served => board/redis/write/scripts/renew.lua => all => ad387613
    a settlement is served => board/redis/write/scripts/settle.lua => all => 5a753c50
    owner and claim of the job => board/redis/write/scripts/prelude.lua => last_fence holder_now give_to fence_of refusal_of => cb26ecea
    a claim or a renewal is served => board/zookeeper/write/claim.rs => attempt renew => 2a523f8e
    a settlement is served => board/zookeeper/write/settle.rs => settle_one permitted settling => b1da596f
    a claim or a renewal is served => board/embedded/write/claim.rs => take renew => 5169e212
    a settlement is served => board/embedded/write/settle.rs => settle => 85655145
    a claim or a settlement is permitted => board/rules.rs => permit permit_owner permit_settlement => 01c95616
    the conductor counts the remaining lease => lease/ledger.rs => renew_at deadlines add expire confirm refuse => a3c810ad
    a renewal is due and the command ends before its deadline => process/lease_times.rs => renew_after known_after terminate_before grace before => 2c4001ba
    the guard is informed and the command starts => worker/mod.rs => end_leftovers launch finish => 49a62c35
    remains of earlier attempts are ended => process/guard/leftover.rs => end end_left_over left_over => 6293556e
    the guard ends a command => process/guard/helper.rs => enforce end_all => 8167da68
    a conductor settles => conductor/settler.rs => settle drop_lost => 06a08579
    possible claims are released => board/ext.rs => release_held => 17761222
    an unconfirmed claim is noticed => conductor/picker/claim.rs => unanswered mark_unreleased check_claim_event => a5ed81f1
";

fn code(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with("//") && !line.starts_with("--"));
    lines
        .flat_map(str::split_whitespace)
        .collect::<Vec<_>>()
        .join(" ")
}

fn function<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let heads = ["fn {name}(", "fn {name}<", "function {name}("];
    let heads = heads.map(|head| head.replace("{name}", name));
    let begin = heads.iter().find_map(|head| text.find(head))?;
    let first = text[begin..].lines().next()?;
    if first.ends_with(" end") {
        return Some(first);
    }
    let line = text[..begin].rfind('\n').map_or(0, |at| at + 1);
    let indent: String = text[line..].chars().take_while(|it| *it == ' ').collect();
    let ends = [format!("\n{indent}}}\n"), format!("\n{indent}end\n")];
    let ends = ends.iter().filter_map(|end| text[begin..].find(end));
    Some(&text[begin..begin + ends.min()?])
}

fn digest(file: &str, functions: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let text = fs::read_to_string(path).unwrap();
    let found =
        |name: &str| function(&text, name).unwrap_or_else(|| panic!("{file} has no {name}"));
    let parts: Vec<_> = match functions {
        "all" => vec![code(&text)],
        names => names.split(' ').map(|name| code(found(name))).collect(),
    };
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, parts.join("\n").as_bytes());
    digest.simple().to_string()[..8].to_owned()
}

#[test]
fn modelled_functions_are_unchanged() {
    let sources = rows(SOURCES).into_iter();
    let changed = sources.filter_map(|[step, file, functions, known]| {
        let digest = digest(file, functions);
        (digest != known).then(|| format!("{step}: {file} {functions}: {digest}"))
    });
    let changed: Vec<_> = changed.collect();
    assert!(
        changed.is_empty(),
        "these functions changed since the model was derived. Check that the model still has \
         their steps, then update the digests:\n{}",
        changed.join("\n")
    );
}
