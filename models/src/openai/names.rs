//! Tool names on the wire, where only `A`–`Z`, `a`–`z`, `0`–`9`, `_` and `-` may stand.

use std::collections::BTreeMap;

use ephor_base::ToolSpec;

/// The longest name the wire takes.
const LONGEST: usize = 64;

/// The names of one request, both ways.
#[derive(Debug)]
pub(crate) struct Names {
    to_wire: BTreeMap<String, String>,
    from_wire: BTreeMap<String, String>,
}

impl Names {
    /// Names for `tools`. The same tools get the same names, whatever their order.
    pub(crate) fn new(tools: &[ToolSpec]) -> Self {
        let mut names = Self { to_wire: BTreeMap::new(), from_wire: BTreeMap::new() };
        let mut sorted: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        sorted.sort_unstable();
        // A name that needs no change keeps it, so that no other takes it first.
        let (plain, other): (Vec<_>, Vec<_>) = sorted.into_iter().partition(|name| fits(name) == *name);
        for name in plain.into_iter().chain(other) {
            names.add(name);
        }
        names
    }

    fn add(&mut self, name: &str) {
        let mut wire = fits(name);
        // Upper case is in no tool's own name, so the numbered form is free.
        let mut number = 2_u32;
        while self.from_wire.contains_key(&wire) {
            wire = format!("{}N{number}", fits(name).chars().take(LONGEST - 11).collect::<String>());
            number = number.saturating_add(1);
        }
        self.from_wire.insert(wire.clone(), name.to_owned());
        self.to_wire.insert(name.to_owned(), wire);
    }

    /// The name on the wire. A tool that is not offered (any more) is named as well as can be.
    pub(crate) fn wire(&self, name: &str) -> String {
        self.to_wire.get(name).cloned().unwrap_or_else(|| fits(name))
    }

    /// The tool of a name on the wire; a name that no tool has stays as it came, for the door to refuse.
    pub(crate) fn tool(&self, wire: &str) -> String {
        self.from_wire.get(wire).cloned().unwrap_or_else(|| wire.to_owned())
    }
}

fn fits(name: &str) -> String {
    let fitted: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(LONGEST).collect();
    if fitted.is_empty() { "_".to_owned() } else { fitted }
}

#[cfg(test)]
mod tests {
    use ephor_base::ToolSpec;

    use super::Names;

    fn names(list: &[&str]) -> Names {
        let spec = |name: &&str| {
            Some(ToolSpec { name: name.parse().ok()?, description: String::new(), schema: String::new() })
        };
        Names::new(&list.iter().filter_map(spec).collect::<Vec<_>>())
    }

    #[test]
    fn names_go_out_and_come_back() {
        let long = "x.".repeat(32);
        let list = ["fs.read", "fs_read", "fs.re.ad", "fs_re_ad", "fs.re_ad", "a", &long];
        let names = names(&list);
        for name in list {
            let wire = names.wire(name);
            assert!(
                wire.len() <= 64 && wire.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'),
                "{wire}"
            );
            assert_eq!(names.tool(&wire), name);
        }
        assert_eq!(names.wire("fs_read"), "fs_read");
    }

    #[test]
    fn the_order_of_the_tools_does_not_matter() {
        let one = names(&["fs.read", "fs_read", "fs.list"]);
        let two = names(&["fs.list", "fs_read", "fs.read"]);
        assert_eq!(one.wire("fs.read"), two.wire("fs.read"));
    }

    #[test]
    fn names_that_no_tool_has_pass() {
        let names = names(&["fs.read"]);
        assert_eq!(names.tool("fs.read"), "fs.read");
        assert_eq!(names.tool("rm -rf"), "rm -rf");
        assert_eq!(names.wire("made up!"), "made_up_");
        assert_eq!(names.wire(""), "_");
    }
}
