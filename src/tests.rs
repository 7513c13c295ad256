//! The order of the modules, as ARCHITECTURE.md draws it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use clap::CommandFactory as _;

use crate::commands::Cli;

/// Returns the rows of a table: one row in each line, with ` => ` between the cells. `\n` stands for a newline.
pub(crate) fn rows<const CELLS: usize>(table: &str) -> Vec<[&'static str; CELLS]> {
    let cells = |row: &str| {
        let row: &str = Box::leak(row.trim().replace("\\n", "\n").into());
        let cells: Vec<_> = row.split(" => ").collect();
        cells.try_into().unwrap_or_else(|_| panic!("{row}"))
    };
    let rows: Vec<_> = table.trim().lines().map(cells).collect();
    assert!(!rows.is_empty(), "a table without rows");
    rows
}

const SRC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// From the ground up: a module may import only modules before it. `lib.rs` alone imports all.
const ORDER: [&str; 30] = [
    "optional",
    "watched_fd",
    "printable",
    "duration",
    "names",
    "glob",
    "backoff",
    "suggest",
    "bounded_read",
    "secret",
    "size",
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
    "diagnosis",
    "transfer",
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

/// Adds each file of this directory: its module and its code.
fn add_files(directory: &Path, files: &mut BTreeMap<String, String>) {
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if OF_TESTS.contains(&path.file_stem().unwrap().to_str().unwrap()) {
            continue;
        }
        if path.is_dir() {
            add_files(&path, files);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let name = path.strip_prefix(SRC).unwrap().with_extension("");
            let name = name.to_str().unwrap().replace('/', "::");
            let name = name.strip_suffix("::mod").unwrap_or(&name);
            files.insert(name.to_owned(), code(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Returns the code of each file but the roots.
fn read_files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    add_files(Path::new(SRC), &mut files);
    files.retain(|file, _| !matches!(file.as_str(), "lib" | "main"));
    files
}

/// Returns each file with the paths that it names.
fn files() -> BTreeMap<String, BTreeSet<String>> {
    let files = read_files().into_iter().map(|(file, code)| {
        let paths = paths(&file, &code);
        (file, paths)
    });
    files.collect()
}

/// Returns a file without its comments and its inline tests, which end the file.
fn code(text: &str) -> String {
    let lines = text.lines().collect::<Vec<_>>();
    let is_of_tests = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].ends_with('{')
    };
    let end = lines.windows(2).position(is_of_tests);
    let (lines, tests) = lines.split_at(end.unwrap_or(lines.len()));
    let ends = tests.iter().position(|it| *it == "}");
    let is_last = ends.is_none_or(|at| at + 1 == tests.len());
    assert!(is_last, "code follows the inline tests: {}", lines[0]);
    let lines = lines.iter();
    let lines = lines.filter(|it| !it.trim_start().starts_with("//"));
    lines.copied().collect::<Vec<_>>().join("\n")
}

/// Returns the paths inside the crate that a file names, from the root.
fn paths(file: &str, code: &str) -> BTreeSet<String> {
    let parent = file.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut paths = BTreeSet::new();
    for (word, place) in [("crate::", ""), ("super::", parent), ("self::", file)] {
        let mut above = place;
        for tree in code.split(word).skip(1) {
            // Between two `super::`.
            if tree.is_empty() {
                above = above.rsplit_once("::").map_or("", |(parent, _)| parent);
                continue;
            }
            let mut path = std::mem::replace(&mut above, place).to_owned();
            if !path.is_empty() {
                path.push_str("::");
            }
            let mut groups = vec![path.clone()];
            for letter in tree.chars() {
                match letter {
                    '{' if path.ends_with("::") || path.is_empty() => groups.push(path.clone()),
                    ',' | '}' if groups.len() > 1 => {
                        paths.insert(path);
                        groups.truncate(groups.len() - usize::from(letter == '}'));
                        path = groups[groups.len() - 1].clone();
                    }
                    ':' | '_' => path.push(letter),
                    letter if letter.is_alphanumeric() => path.push(letter),
                    letter if letter.is_whitespace() && groups.len() > 1 => {}
                    _ => break,
                }
            }
            paths.insert(path);
        }
    }
    // What remains of a group after its last comma names nothing.
    paths.retain(|it| !it.is_empty() && !it.ends_with(':'));
    paths
}

#[test]
fn imports_are_found_in_paths_and_groups() {
    let text = "//! crate::exit\nuse crate::{\n    board::{self, url::BoardUrl},\n    job::Job,\n};\n\
        fn at(now: crate::output::Now, up: super::super::Up, it: super::It) {}\n\
        #[cfg(test)]\nmod tests {\nuse crate::commands::Cli;\n}";
    let found = Vec::from_iter(paths("lease::ledger", &code(text)));
    let expected = [
        "Up",
        "board::self",
        "board::url::BoardUrl",
        "job::Job",
        "lease::It",
        "output::Now",
    ];
    assert_eq!(found, expected);
}

#[test]
fn drawing_has_the_order_of_the_modules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let drawn = text.split("```").nth(1).unwrap().lines();
    let drawn = drawn.filter_map(|line| line.split_whitespace().next()?.strip_suffix('/'));
    let drawn: Vec<_> = drawn.collect();
    let down = ORDER.iter().rev().filter(|it| drawn.contains(it));
    assert_eq!(drawn, down.copied().collect::<Vec<_>>());
    assert!(drawn.len() > 8, "{drawn:?}");
}

#[test]
fn no_module_imports_one_above_it() {
    let floor = |path: &str| {
        ORDER
            .iter()
            .position(|it| path.split("::").next() == Some(it))
    };
    let mut upward = Vec::new();
    for (file, paths) in files() {
        let own = floor(&file).unwrap_or_else(|| panic!("{file} has no place in the order"));
        // Code outside of tests names the simulation only where a test compiles it.
        let paths = paths
            .iter()
            .filter(|it| !it.starts_with("process::simulation"));
        let above = paths.filter(|it| floor(it).is_some_and(|other| other > own));
        upward.extend(above.map(|path| format!("{file} imports {path}")));
    }
    assert!(upward.is_empty(), "{upward:#?}");
}

/// Returns the file that declares a path, also if other files export the name again.
fn file_of<'a>(files: &'a BTreeMap<String, BTreeSet<String>>, path: &'a str) -> Option<&'a str> {
    let (mut path, mut found) = (path, None);
    // More than any chain of exports.
    for _ in 0..9 {
        let mut above = path;
        let (file, imports) = loop {
            match files.get_key_value(above) {
                Some(file) => break file,
                None => above = above.rsplit_once("::")?.0,
            }
        };
        found = Some(file.as_str());
        let name = path[file.len()..].split("::").nth(1);
        // A name from its own parents is one that the file uses.
        let mut imports = imports.iter().filter_map(|it| it.rsplit_once("::"));
        let again = imports.find(|(place, it)| Some(*it) == name && !is_below(file, place));
        let Some((place, it)) = again else { break };
        path = files[file].get(&format!("{place}::{it}"))?;
    }
    found
}

/// Whether a module is another one or inside of it.
fn is_below(module: &str, other: &str) -> bool {
    let rest = module.strip_prefix(other);
    rest.is_some_and(|it| it.is_empty() || it.starts_with("::"))
}

/// Returns each file with the files that it imports, but its own parents.
fn imports(files: &BTreeMap<String, BTreeSet<String>>) -> impl Iterator<Item = (&str, &str)> {
    files.iter().flat_map(|(file, paths)| {
        let all = paths.iter().filter_map(|it| file_of(files, it));
        let all = all.filter(|it| !is_below(file, it));
        all.map(|it| (file.as_str(), it))
    })
}

/// The modules of each directory have an order.
#[test]
fn no_modules_import_each_other_in_a_loop() {
    let files = files();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, import) in imports(&files) {
        let pair = file.split("::").zip(import.split("::"));
        let same = pair.take_while(|(one, other)| one == other).count();
        let module = |it: &str| it.split("::").take(same + 1).collect::<Vec<_>>().join("::");
        edges
            .entry(module(file))
            .or_default()
            .insert(module(import));
    }
    let is_looped = |module: &&String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![*module]);
        while let Some(it) = next.pop() {
            let further = edges.get(it).into_iter().flatten();
            next.extend(further.filter(|it| seen.insert(*it)));
        }
        seen.contains(module)
    };
    let looped: Vec<_> = edges.keys().filter(is_looped).collect();
    assert!(looped.is_empty(), "{looped:#?}");
}

#[test]
fn only_the_opener_names_a_backend() {
    let files = files();
    for backend in ["redis", "zookeeper", "embedded"] {
        let own = format!("board::{backend}");
        let naming = imports(&files)
            .filter(|(file, import)| is_below(import, &own) && !is_below(file, &own));
        let naming: BTreeSet<_> = naming.map(|(file, _)| file).collect();
        assert_eq!(naming, BTreeSet::from(["board::open"]), "{backend}");
    }
}

/// A module below the commands does not know their names and options.
#[test]
fn only_the_upper_modules_name_a_command_or_an_option() {
    const BELOW: [&str; 6] = ["board", "job", "lease", "problem", "process", "worker"];
    // A board's URL lacks the password, so its errors name this option.
    const OF_URLS: &str = "password-file";
    // One code means that a command hides jobs.
    const CODES: &str = "problem::codes";

    let grammar = Cli::command();
    let commands: Vec<_> = grammar.get_subcommands().collect();
    let options = commands.iter().copied().chain([&grammar]);
    let options = options.flat_map(clap::Command::get_arguments);
    let options: BTreeSet<_> = options.filter_map(clap::Arg::get_long).collect();
    let commands: BTreeSet<_> = commands.iter().map(|it| it.get_name()).collect();
    let first = |text: &str| {
        let end = text.find(|it: char| !it.is_ascii_lowercase() && it != '-');
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let mut named = Vec::new();
    for (file, code) in read_files() {
        if file == CODES || !BELOW.iter().any(|it| is_below(&file, it)) {
            continue;
        }
        let words = code.split("--").skip(1).map(first);
        named.extend(words.filter(|it| it != OF_URLS && options.contains(&**it)));
        for sign in ["`", "`jobboard ", "Fix::look"] {
            let words = code.split(sign).skip(1).map(first);
            named.extend(words.filter(|it| sign == "Fix::look" || commands.contains(&**it)));
        }
        assert!(named.is_empty(), "{file} names {named:?}");
    }
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

#[test]
fn architecture_names_each_file_of_the_board() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (_, map) = text.split_once("\n  board/").unwrap();
    let (map, _) = map.split_once("\n  job/").unwrap();
    let files = fs::read_dir(root.join("src/board")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.ends_with(".rs") && name != "mod.rs");
    let named: BTreeSet<_> = map.split_whitespace().collect();
    let missing: Vec<_> = names
        .filter(|name| !named.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn architecture_names_each_method_of_the_board() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code = fs::read_to_string(root.join("src/board/mod.rs")).unwrap();
    let (_, methods) = code.split_once("trait Board:").unwrap();
    let methods = methods.split("fn ").skip(1);
    let methods: BTreeSet<_> = methods
        .filter_map(|it| it.split(['(', '<']).next())
        .collect();
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("| the board |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let named = table.split('`').skip(1).step_by(2);
    let named: BTreeSet<_> = named
        .filter(|it| it.starts_with(char::is_lowercase))
        .collect();
    assert_eq!(named, methods);
}
