//! What every file of the repository keeps to.
#![expect(clippy::expect_used, reason = "a test stops at the first surprise")]

use std::{fmt::Write as _, fs, path::Path};

/// The longest a source file may be. Beyond it a file has more than one main type.
const MOST_LINES: usize = 800;

/// The most lines of Rust without tests that each crate may have, by its folder. What is in the way is a sign to look for a simpler
/// mechanism. Their sum is only ever lowered: what one has more, with a reason, others have less.
const CEILINGS: [(&str, usize); 12] = [
    ("base/", 3_280),
    ("chain/tlog/", 2_050),
    ("chain/record/", 4_080),
    ("chain/verify/", 1_950),
    ("chain/signatures/", 100),
    ("chain/src/", 12_850),
    ("governance/", 6_430),
    ("kernel/src/", 11_200),
    ("kernel/runtime/", 6_510),
    ("mesh/", 5_500),
    ("sandbox/mcp/", 3_500),
    ("node/", 20_000),
];

/// Folders, and the file that stands for one, that hold nothing of ours.
const SKIPPED: [&str; 3] = [".git", "target", "node_modules"];

/// Clocks are injected: these read one by themselves. Reads outside `node/src`, each with the reason why it may.
const CLOCKS: [&str; 2] = ["Instant::now", "SystemTime::now"];
const MAY_READ_A_CLOCK: [(&str, &str); 0] = [];

/// What opens a file. In `node/src` that is the business of `files`, and below it of `ephor_chain::disk`, which wait for no pipe and read
/// nothing without end; but for these, each with the reason why it may.
const OPENERS: [&str; 4] = ["fs::read(", "read_to_string(", "File::open(", "OpenOptions::new"];
const MAY_OPEN: [(&str, &str); 4] = [
    ("node/src/home.rs", "writes what is then renamed, and waits for its folder"),
    ("node/src/serving/api.rs", "opens the folder of the socket, to name it shorter"),
    ("node/src/serving.rs", "opens /dev/null"),
    ("node/src/terminal.rs", "opens /dev/tty"),
];

/// Words that name something which only looks like the thing.
const HOLLOW: [&str; 7] = ["stub", "stubs", "mock", "mocks", "noop", "placeholder", "placeholders"];

/// Comments that begin so promise work instead of telling why.
const PROMISES: [&str; 4] = ["TODO", "FIXME", "XXX", "HACK"];

/// A text file of the repository.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Whether it is Rust that the product is made of: `CRATE/src`, the guests' too.
    fn is_product(&self) -> bool {
        self.is_rust()
            && self.path.contains("/src/")
            && !self.path.contains("/tests/")
            && !self.path.ends_with("/tests.rs")
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// The lines above the tests of the file.
    fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.numbered().take_while(|(_, line)| *line != "#[cfg(test)]")
    }
}

/// Every text file under the workspace.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("node lies in the workspace");
    let mut sources = Vec::new();
    collect(root, root, &mut sources);
    assert!(sources.iter().any(|source| source.path == "node/src/main.rs"), "the walk went nowhere");
    sources
}

fn collect(root: &Path, folder: &Path, into: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("folders can be read") {
        let entry = entry.expect("entries can be read");
        let (path, kind) = (entry.path(), entry.file_type().expect("entries have a type"));
        if SKIPPED.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_dir() {
            collect(root, &path, into);
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            into.push(Source { path: relative(root, &path), text });
        }
    }
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).expect("it lies below").to_string_lossy().replace('\\', "/")
}

/// Fails with one line for each finding.
fn none(rule: &str, findings: impl IntoIterator<Item = String>) {
    let list = findings.into_iter().fold(String::new(), |mut list, finding| {
        writeln!(list, "  {finding}").expect("a string takes it");
        list
    });
    assert!(list.is_empty(), "{rule}:\n{list}");
}

/// The words of a line in lower case; `MockClock` and `mock_clock` are both `mock`, `clock`.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower_before = false;
    for c in line.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower_before) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        lower_before = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_hollow(line: &str) -> bool {
    let words = words(line);
    words.iter().any(|word| HOLLOW.contains(&&**word)) || words.windows(2).any(|pair| pair == ["no", "op"])
}

/// The text of a comment on this line.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("//").or_else(|| line.split_once(" // ").map(|(_, text)| text))?;
    Some(text.trim_start_matches(['/', '!', ' ']))
}

/// Whether the line has the keyword, outside of comments and plain strings.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let outside: String = code.split('"').step_by(2).collect();
    outside.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
}

/// Whether the comment and attributes right above line `at`, or the line itself, say why it is sound.
fn is_explained(lines: &[&str], at: usize) -> bool {
    let above = lines.iter().take(at).rev().map(|line| line.trim_start());
    let mut above = above.take_while(|line| line.starts_with("//") || line.starts_with("#["));
    let says = |line: &str| line.contains("// SAFETY:") || line.contains("/// # Safety");
    above.any(says) || lines.get(at).is_some_and(|line| says(line))
}

#[test]
fn product_code_holds_nothing_hollow() {
    let product = sources().into_iter().filter(Source::is_product);
    none(
        "words for something that only looks like the thing, in product code",
        product.flat_map(|source| {
            let found = source.product_lines().filter(|(_, line)| is_hollow(line));
            found.map(|(number, line)| format!("{}:{number}: {}", source.path, line.trim())).collect::<Vec<_>>()
        }),
    );
}

#[test]
fn product_code_is_finished() {
    let product = sources().into_iter().filter(Source::is_product);
    let macros = [concat!("todo", "!("), concat!("unimplemented", "!(")];
    let unfinished = |line: &str| {
        let promises = comment(line).is_some_and(|text| PROMISES.iter().any(|word| text.starts_with(word)));
        promises || macros.iter().any(|name| line.contains(name))
    };
    none(
        "work that is promised instead of done, in product code",
        product.flat_map(|source| {
            let found = source.product_lines().filter(|(_, line)| unfinished(line));
            found.map(|(number, line)| format!("{}:{number}: {}", source.path, line.trim())).collect::<Vec<_>>()
        }),
    );
}

#[test]
fn the_repository_stands_by_itself() {
    // In two parts, so that this file does not hold them.
    let outside = [concat!("../", "shared"), concat!("../", ".library"), concat!("/", "root/"), concat!("/", "work/")];
    none(
        "mentions of places outside the repository",
        sources().iter().flat_map(|source| {
            let found = source.numbered().filter(|(_, line)| outside.iter().any(|place| line.contains(place)));
            found.map(|(number, line)| format!("{}:{number}: {}", source.path, line.trim())).collect::<Vec<_>>()
        }),
    );
}

#[test]
fn every_source_file_says_what_it_is() {
    let product = sources().into_iter().filter(|source| source.is_rust() && source.path.contains("/src/"));
    let silent = product.filter(|source| !source.text.starts_with("//!")).map(|source| source.path);
    none("source files that do not begin with `//!`", silent);
}

#[test]
fn no_source_file_is_too_long() {
    let long = sources().into_iter().filter(|source| source.is_rust()).filter_map(|source| {
        let lines = source.text.lines().count();
        (lines > MOST_LINES).then(|| format!("{}: {lines} lines, at most {MOST_LINES}", source.path))
    });
    none("files that are too long", long);
}

#[test]
fn no_crate_outgrows_its_ceiling() {
    let sources: Vec<_> = sources().into_iter().filter(Source::is_product).collect();
    let over = CEILINGS.iter().filter_map(|(folder, most)| {
        let own = sources.iter().filter(|source| source.path.starts_with(folder));
        let lines: usize = own.map(|source| source.product_lines().count()).sum();
        assert!(lines > 0, "there is nothing in {folder}");
        (lines > *most).then(|| format!("{folder}: {lines} lines, at most {most}"))
    });
    none("crates that are too large", over);
}

#[test]
fn every_unsafe_says_why_it_is_sound() {
    let product = sources().into_iter().filter(|source| source.is_rust() && !source.path.contains("/lint-sample/"));
    none(
        "`unsafe` without a `// SAFETY:` comment right above it",
        product.flat_map(|source| {
            let lines: Vec<&str> = source.text.lines().collect();
            let bare = lines.iter().enumerate().filter(|(at, line)| is_unsafe(line) && !is_explained(&lines, *at));
            bare.map(|(at, line)| format!("{}:{}: {}", source.path, at + 1, line.trim())).collect::<Vec<_>>()
        }),
    );
}

#[test]
fn only_the_node_reads_a_clock() {
    let product = sources().into_iter().filter(|source| source.is_product() && !source.path.starts_with("node/src/"));
    let may = |source: &Source| MAY_READ_A_CLOCK.iter().any(|(path, _)| source.path == *path);
    none(
        "a clock is read outside node/src; it is to be injected",
        product.filter(|source| !may(source)).flat_map(|source| {
            let reads = |line: &str| comment(line).is_none() && CLOCKS.iter().any(|clock| line.contains(clock));
            let found = source.product_lines().filter(|(_, line)| reads(line));
            found.map(|(number, line)| format!("{}:{number}: {}", source.path, line.trim())).collect::<Vec<_>>()
        }),
    );
}

#[test]
fn the_node_opens_files_in_one_place() {
    let product = sources().into_iter().filter(|source| source.is_product() && source.path.starts_with("node/src/"));
    let may = |source: &Source| MAY_OPEN.iter().any(|(path, _)| source.path == *path);
    none(
        "a file is opened past `files`, which refuses what is no regular file",
        product.filter(|source| !may(source)).flat_map(|source| {
            let opens = |line: &str| comment(line).is_none() && OPENERS.iter().any(|opener| line.contains(opener));
            let found = source.product_lines().filter(|(_, line)| opens(line));
            found.map(|(number, line)| format!("{}:{number}: {}", source.path, line.trim())).collect::<Vec<_>>()
        }),
    );
}

#[test]
fn an_exception_that_nobody_needs_is_taken_away() {
    let sources = sources();
    let needed = |path: &str| {
        let mut at = sources.iter().filter(|source| source.path == path);
        at.any(|source| source.product_lines().any(|(_, line)| CLOCKS.iter().any(|clock| line.contains(clock))))
    };
    none(
        "exceptions without a use",
        MAY_READ_A_CLOCK.iter().filter(|(path, _)| !needed(path)).map(|(path, _)| (*path).into()),
    );
}

#[test]
fn the_rules_see_what_they_are_to_see() {
    for hollow in ["struct MockClock;", "fn noop() {}", "// a no-op gate", "let stub_model = 1;", "/// A placeholder."]
    {
        assert!(is_hollow(hollow), "{hollow}");
    }
    for honest in ["/// Nobody can mockingly stubborn", "no operation", "let snoop = hammock;", "none, op"] {
        assert!(!is_hollow(honest), "{honest}");
    }
    assert!(is_unsafe("    unsafe { f() }") && is_unsafe("let x = unsafe { f(\"a\") };"));
    assert!(!is_unsafe("unsafe_op_in_unsafe_fn") && !is_unsafe("// unsafe") && !is_unsafe("say(\"unsafe\")"));
    assert!(is_explained(&["// SAFETY: it is ours.", "#[inline]", "unsafe { f() }"], 2));
    assert!(!is_explained(&["// SAFETY: it is ours.", "let a = 1;", "unsafe { f() }"], 2));
    assert_eq!(comment("    /// TODO is a word"), Some("TODO is a word"));
    assert_eq!(comment("let pattern = \"//TODO\";"), None);
}
