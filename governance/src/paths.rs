//! Paths as arguments: whether one stays in the workspace by its spelling alone.
//!
//! This is the first of two walls. The second is the sandbox, whose guests cannot name anything outside.

/// Whether `path` is relative and never climbs above where it starts, read as either a Unix or a Windows path.
#[must_use]
pub fn stays_inside(path: &str) -> bool {
    if path.starts_with(['/', '\\']) || has_drive(path) || path.contains('\0') {
        return false;
    }
    let mut depth = 0usize;
    for component in path.split(['/', '\\']) {
        match component {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return false,
            },
            _ => depth += 1,
        }
    }
    true
}

/// The same path without the components that lead nowhere: `a/../b`, `./b` and `b//` are `b`. No link is followed.
#[must_use]
pub fn resolved(path: &str) -> String {
    let mut components = Vec::new();
    for component in path.split('/') {
        match (component, components.last()) {
            ("" | ".", _) => {}
            ("..", Some(last)) if *last != ".." => drop(components.pop()),
            _ => components.push(component),
        }
    }
    let start = if path.starts_with('/') { "/" } else { "" };
    let resolved = format!("{start}{}", components.join("/"));
    if resolved.is_empty() { ".".to_owned() } else { resolved }
}

fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::{resolved, stays_inside};

    #[test]
    fn a_path_is_resolved_to_what_it_names() {
        let same = [
            ("a/../b", "b"),
            ("./b", "b"),
            ("b//", "b"),
            ("", "."),
            ("a/b/../..", "."),
            ("../a/../..", "../.."),
            ("/a/./b/..", "/a"),
        ];
        for (path, is) in same {
            assert_eq!(resolved(path), is, "{path}");
        }
        assert_eq!(resolved("Makefile/ notes.md \n/.."), "Makefile");
    }

    #[test]
    fn only_paths_below_the_start_stay_inside() {
        for inside in ["", ".", "a", "a/b", "./a", "a/../b", "a//b", "..a", "a..", "a/./.."] {
            assert!(stays_inside(inside), "{inside}");
        }
        for outside in ["/", "/etc/passwd", "..", "a/../..", "../a", "\\a", "C:\\a", "c:a", "a\\..\\..\\b", "a\0b"] {
            assert!(!stays_inside(outside), "{outside}");
        }
    }
}
