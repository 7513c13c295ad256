//! The order of the modules, as ARCHITECTURE.md draws it.

use std::{collections::BTreeSet, fs, path::Path};

/// From the ground up: a module may import only modules before it. `lib.rs` alone imports all.
const ORDER: [&str; 28] = [
    "watched_fd",
    "printable",
    "duration",
    "names",
    "glob",
    "backoff",
    "suggest",
    "bounded_read",
    "secret",
    "problem",
    "trust",
    "atomic_file",
    "job",
    "trace",
    "process",
    "board",
    "lease",
    "logbook",
    "retry",
    "worker",
    "conductor",
    "output",
    "exit",
    "config",
    "transfer",
    "diagnosis",
    "context",
    "commands",
];

/// Tests may use the program from any side.
const OF_TESTS: [&str; 6] = [
    "conformance",
    "model",
    "simulation",
    "testing",
    "tests",
    "untrusted",
];

/// Adds each upward import of the files in this directory.
fn add_upward(module: Option<&str>, folder: &Path, upward: &mut Vec<String>) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let module = module.unwrap_or(stem);
        if OF_TESTS.contains(&stem) || matches!(module, "lib" | "main") {
            continue;
        }
        if path.is_dir() {
            add_upward(Some(module), &path, upward);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let floor = |name: &str| ORDER.iter().position(|it| *it == name);
            let own = floor(module).unwrap_or_else(|| panic!("{module} has no place in the order"));
            let code = code(&text);
            let above = imports(&code).into_iter();
            let above = above.filter(|it| floor(it).is_some_and(|other| other > own));
            upward.extend(above.map(|other| format!("{} imports {other}", path.display())));
        }
    }
}

/// Returns a file without its comments and its inline tests.
fn code(text: &str) -> String {
    let lines = text.lines().collect::<Vec<_>>();
    let is_of_tests = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].ends_with('{')
    };
    let end = lines.windows(2).position(is_of_tests);
    let lines = lines[..end.unwrap_or(lines.len())].iter();
    let lines = lines.filter(|it| !it.trim_start().starts_with("//"));
    lines.copied().collect::<Vec<_>>().join("\n")
}

/// Returns the modules of the crate that this code names.
fn imports(code: &str) -> BTreeSet<&str> {
    let name = |text: &'_ str| text.find(|it: char| it != '_' && !it.is_alphanumeric());
    let name = |text| &text[..name(text).unwrap_or(text.len())];
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            // Code outside of tests names the simulation only where a test compiles it.
            if !rest.starts_with("process::simulation") {
                found.insert(name(rest));
            }
            continue;
        };
        let (mut depth, mut is_next) = (0, true);
        for (at, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => is_next = true,
                letter if is_next && letter.is_alphabetic() => {
                    found.insert(name(&group[at..]));
                    is_next = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn imports_are_found_in_paths_and_groups() {
    let text = "//! crate::exit\nuse crate::{\n    board::{self, url::BoardUrl},\n    job::Job,\n};\n\
        fn at(now: crate::output::Now) {}\n#[cfg(test)]\nmod tests {\nuse crate::commands::Cli;\n}";
    let code = code(text);
    let found = Vec::from_iter(imports(&code));
    assert_eq!(found, ["board", "job", "output"]);
}

#[test]
fn no_module_imports_one_above_it() {
    let mut upward = Vec::new();
    add_upward(
        None,
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")),
        &mut upward,
    );
    assert!(upward.is_empty(), "{upward:#?}");
}

#[test]
fn architecture_names_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let names = text.split('`').skip(1).step_by(2);
    let is_path = |name: &&str| {
        // `touch` and NAME stand for something new.
        let is_example = name.contains("touch") || name.contains(['*', ' ', 'N']);
        (name.starts_with("src/") || name.starts_with("tests/")) && !is_example
    };
    let missing: Vec<_> = names
        .filter(is_path)
        .filter(|name| !root.join(name).exists())
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
