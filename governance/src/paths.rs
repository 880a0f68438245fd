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

fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::stays_inside;

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
