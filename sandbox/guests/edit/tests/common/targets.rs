//! What any bytes are to hold for: a patch and a text, and two texts.

use ephor_edit::{Diff, Look, MOST_BYTES, Patch, Replacement, Replacements, Text};

/// One parser, and what must hold for all bytes.
pub(crate) struct Target {
    /// As the folder in the corpus.
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
}

/// All of them.
pub(crate) const TARGETS: [Target; 1] = [Target { name: "patch", run: patch }];

/// A patch, and behind a NUL the text that it is for.
fn patch(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (patch, text) = text.split_once('\0').unwrap_or((text, ""));
    let (Ok(given), Ok(text)) = (Text::new(patch), Text::new(text)) else { return };
    if let Ok(patch) = Patch::parse(given) {
        for section in patch.sections() {
            for text in [Some(text), None] {
                if let Ok(made) = section.apply(text) {
                    check(text, made.as_deref());
                }
            }
        }
    }
    let new = patch.chars().take(8).collect::<String>();
    let old = text.as_str().chars().skip(3).take(8).collect::<String>();
    if let Ok(edit) = Replacement::new(old, new, bytes.len().is_multiple_of(2))
        && let Ok(edits) = Replacements::new(vec![edit])
        && let Ok(made) = edits.apply(text)
    {
        check(Some(text), Some(&made));
    }
    check(Some(given), Some(text.as_str()));
}

/// What was made is bounded, and how it differs says all of it.
fn check(old: Option<Text<'_>>, new: Option<&str>) {
    assert!(new.is_none_or(|new| new.len() <= MOST_BYTES));
    let Some(made) = new.map(Text::new).transpose().ok() else { panic!("what was made is too large") };
    let diff = Diff::between(old, made);
    let look = Look { columns: 40, lines: 12, context: 1, spell: |line| line.escape_debug().to_string() };
    assert!(diff.shown(&look).lines().len() <= 12);
    let patch = diff.to_patch("a name", 0o644);
    if diff.is_empty() {
        assert!(patch.is_empty());
        return;
    }
    // It may be larger than a patch may be.
    let Ok(text) = Text::new(&patch) else { return };
    let Ok(read) = Patch::parse(text) else { panic!("{patch:?} is no patch") };
    let [section] = read.sections() else { panic!("{patch:?} is for several files") };
    match section.apply(old) {
        Ok(again) => assert_eq!(again.as_deref(), new),
        Err(why) => panic!("{why}: {patch:?}"),
    }
}
