//! Where a path argument of a call leads: found out before the call is judged.

use minicbor::{Decode, Decoder, Encode, Encoder, data::Type};
use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::{Digest, legible};

/// One path argument of a tool call, followed to what it names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Located {
    /// The argument.
    #[n(0)]
    pub argument: String,
    /// Where it leads.
    #[n(1)]
    pub leads: Leads,
}

/// Where a path leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Leads {
    /// To this place in the workspace.
    #[n(0)]
    To(#[n(0)] Place),
    /// Nowhere that can be judged: out of the workspace, in a circle, to a disk that does not answer. In words for the model.
    #[n(1)]
    Nowhere(#[n(0)] String),
}

impl Leads {
    /// The place, if it leads to one.
    #[must_use]
    pub const fn place(&self) -> Option<&Place> {
        match self {
            Self::To(place) => Some(place),
            Self::Nowhere(_) => None,
        }
    }
}

/// A place in a workspace, as the file system has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Place {
    /// From the workspace on and through no symbolic link; `.` is the workspace itself.
    #[n(0)]
    pub path: String,
    /// Whether something is there.
    #[n(1)]
    pub exists: bool,
    /// What is there; where nothing is, the innermost folder above it.
    #[n(2)]
    pub node: FileId,
    /// How many names it has in the file system.
    #[n(3)]
    pub names: u64,
    /// SHA-256 of its content, where the call replaces it.
    #[n(4)]
    pub content: Option<Digest>,
    /// The bytes of its content, where the call replaces it and the whole file can be kept: content and mode are all that there is to
    /// it. Logs of earlier versions do not have it.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeps: Option<u64>,
    /// What the call makes of it, where its driver can say so before it is judged. Then the call can make nothing else of it. Logs of
    /// earlier versions do not have it.
    #[n(6)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub makes: Option<Makes>,
}

/// What a call makes of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Makes {
    /// SHA-256 of what the file holds afterwards; none if it is gone.
    #[n(0)]
    pub content: Option<Digest>,
    /// How that differs from what it holds.
    #[n(1)]
    pub difference: Difference,
    /// What it is afterwards, where the call may change more than the content of a file. Logs of earlier versions do not have it.
    #[n(2)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
}

/// What there is at a place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A file with these permission bits.
    #[n(0)]
    File(#[n(0)] u32),
    /// A folder with these permission bits.
    #[n(1)]
    Folder(#[n(0)] u32),
    /// A symbolic link that leads there, wherever that is.
    #[n(2)]
    Link(#[n(0)] String),
}

/// How two contents of a file differ, as a person is shown it: lines of a unified diff, and how many were left out in the middle. None,
/// if it cannot be said in lines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Difference {
    head: Vec<String>,
    /// How many lines stand between the two and were left out.
    left: u64,
    tail: Vec<String>,
}

/// Lines that no difference is shown in. Nothing was done with them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadDifference {
    /// There are more than [`Difference::LINES`].
    #[error("a difference has at most {most} lines, and this has {0}", most = Difference::LINES)]
    Lines(usize),
    /// This one is wider than [`Difference::COLUMNS`], or holds what a reader would not see.
    #[error("a line of a difference fits a terminal and hides nothing; line {0} does not")]
    Line(usize),
}

impl Difference {
    /// How many lines there are at most: they stand in a question that fits a screen.
    pub const LINES: usize = 10;

    /// How wide a line is at most, by [`legible::columns`].
    pub const COLUMNS: usize = 74;

    /// Takes lines from both ends, with how many there are between them.
    ///
    /// # Errors
    /// Where there are too many, or one does not fit a terminal.
    pub fn new(head: Vec<String>, left: u64, tail: Vec<String>) -> Result<Self, BadDifference> {
        if head.len().saturating_add(tail.len()) > Self::LINES {
            return Err(BadDifference::Lines(head.len().saturating_add(tail.len())));
        }
        let fits = |line: &String| legible::columns(line) <= Self::COLUMNS && legible::line(line) == *line;
        match head.iter().chain(&tail).position(|line| !fits(line)) {
            Some(at) => Err(BadDifference::Line(at.saturating_add(1))),
            None => Ok(Self { head, left, tail }),
        }
    }

    /// Whether there is no line of it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }

    /// In at most `most` lines, from both ends. One of them says how many are left out, if any.
    #[must_use]
    pub fn shown(&self, most: usize) -> Vec<String> {
        let rows: Vec<&String> = self.head.iter().chain(&self.tail).collect();
        if self.left == 0 && rows.len() <= most {
            return rows.into_iter().cloned().collect();
        }
        let Some(kept) = most.checked_sub(1) else { return Vec::new() };
        // What is left out already stands between the two, and stays there.
        let ends = if self.left == 0 { (rows.len(), rows.len()) } else { (self.head.len(), self.tail.len()) };
        let tail = ends.1.min(kept / 3);
        let head = ends.0.min(kept.saturating_sub(tail));
        let behind = rows.len().saturating_sub(tail);
        let left = self.left.saturating_add(behind.saturating_sub(head) as u64);
        let said = format!("… {left} more lines of the difference");
        rows.iter().take(head).chain([&&said]).chain(rows.iter().skip(behind)).map(|row| (*row).clone()).collect()
    }
}

impl Serialize for Difference {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.shown(usize::MAX).serialize(to)
    }
}

/// A list of the lines, with the number of those that were left out in its place.
impl<C> Encode<C> for Difference {
    fn encode<W: minicbor::encode::Write>(
        &self,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        let lines = self.head.len().saturating_add(self.tail.len());
        to.array(lines.saturating_add(usize::from(self.left > 0)) as u64)?;
        self.head.iter().try_for_each(|line| to.str(line).map(drop))?;
        if self.left > 0 {
            to.u64(self.left)?;
        }
        self.tail.iter().try_for_each(|line| to.str(line).map(drop))
    }
}

impl<'b, C> Decode<'b, C> for Difference {
    fn decode(from: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let bad = || minicbor::decode::Error::message("no such difference");
        let (mut head, mut left, mut tail) = (Vec::new(), 0, Vec::new());
        for _ in 0..from.array()?.filter(|items| *items <= Self::LINES as u64 + 1).ok_or_else(bad)? {
            match from.datatype()? {
                Type::String if left == 0 => head.push(from.str()?.to_owned()),
                Type::String => tail.push(from.str()?.to_owned()),
                _ if left == 0 => left = Some(from.u64()?).filter(|left| *left > 0).ok_or_else(bad)?,
                _ => return Err(bad()),
            }
        }
        Self::new(head, left, tail).map_err(|_| bad())
    }
}

/// The most bytes of a file that are kept when a call replaces it: a larger one cannot be put back.
pub const MOST_KEPT: u64 = 1 << 20;

/// The most bytes that are kept for one session. What it writes beyond cannot be put back.
pub const MOST_KEPT_IN_SESSION: u64 = 64 << 20;

/// What a call replaces, kept before it does, so that it can be put back. As JSON, bytes that are no text are hexadecimal digits in
/// `held_hex`.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Kept {
    /// From the workspace on and through no symbolic link.
    #[n(0)]
    pub path: String,
    /// What the file held; none if there was none.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub held: Option<Vec<u8>>,
    /// Its permission bits; zero if there was none.
    #[n(2)]
    pub mode: u32,
}

/// What tells one file of a machine from every other, as long as it exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct FileId {
    /// The device.
    #[n(0)]
    pub device: u64,
    /// The inode on it.
    #[n(1)]
    pub inode: u64,
}

impl Serialize for Kept {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut kept = to.serialize_struct("Kept", 3)?;
        kept.serialize_field("path", &self.path)?;
        kept.serialize_field("mode", &self.mode)?;
        match self.held.as_deref().map(str::from_utf8) {
            Some(Err(_)) => {
                let digits: String = self.held.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
                kept.serialize_field("held_hex", &digits)?;
            }
            Some(Ok(text)) => kept.serialize_field("held", text)?,
            None => kept.serialize_field("held", &None::<&str>)?,
        }
        kept.end()
    }
}

impl Place {
    /// How much there is to keep before it is replaced: nothing where there is no file. `None` where it cannot be kept, or what takes its
    /// place is no file and so cannot be taken back.
    #[must_use]
    pub fn to_keep(&self) -> Option<u64> {
        let form = self.makes.as_ref().and_then(|makes| makes.form.as_ref());
        match form {
            Some(Form::Folder(_) | Form::Link(_)) => None,
            _ if self.exists => self.keeps.filter(|bytes| *bytes <= MOST_KEPT),
            _ => Some(0),
        }
    }

    /// Whether it is the same file, or the same lack of one, as `other`: that with the same content, where that counts.
    #[must_use]
    pub fn is_still(&self, other: &Self) -> bool {
        let same_file = || (self.node, self.content) == (other.node, other.content);
        (&self.path, self.exists) == (&other.path, other.exists) && (!self.exists || same_file())
    }
}

#[cfg(test)]
mod tests {
    use super::{BadDifference, Difference, Digest, FileId, Makes, Place};
    use crate::cbor;

    #[test]
    fn what_is_shown_of_a_difference_fits_a_terminal_and_hides_nothing() {
        let lines = |line: &str, count: usize| Difference::new(vec![line.to_owned(); count], 0, Vec::new());
        assert!(lines(&format!("+{}", "x".repeat(73)), Difference::LINES).is_ok());
        assert_eq!(lines("+", Difference::LINES + 1), Err(BadDifference::Lines(11)));
        for bad in [&"x".repeat(75), &"漢".repeat(38), "+a\u{202e}b", "+a\u{1b}[2J", "+a\nb", "+a\t"] {
            assert_eq!(lines(bad, 2), Err(BadDifference::Line(1)), "{bad:?}");
        }
        // Nor does the record bring another.
        let bytes = cbor::to_vec(&vec!["+a\u{1b}[2J"]);
        assert!(cbor::from_slice::<Difference>(&bytes).is_err());
    }

    #[test]
    fn a_difference_says_how_many_lines_are_left_out_however_little_room_there_is() {
        let lines = |range: std::ops::Range<u32>| range.map(|line| format!("+{line}")).collect::<Vec<_>>();
        for (head, left, tail) in [(lines(0..10), 0, Vec::new()), (lines(0..6), 91, lines(97..100))] {
            let all = (head.len() + tail.len()) as u64 + left;
            let difference = Difference::new(head, left, tail).unwrap();
            assert_eq!(cbor::from_slice::<Difference>(&cbor::to_vec(&difference)).unwrap(), difference);
            assert!(difference.shown(0).is_empty());
            for most in 1..12 {
                let shown = difference.shown(most);
                assert!(shown.len() <= most, "{most}: {shown:?}");
                let said = shown.iter().position(|line| line.starts_with('…'));
                let number = |at: usize| shown[at].split(' ').nth(1).unwrap().parse::<u64>().unwrap();
                let whole = said.map_or(shown.len() as u64, |at| number(at) + shown.len() as u64 - 1);
                assert_eq!(whole, all, "{most}: {shown:?}");
                // In the place of those that are left out.
                let line = |at: usize| shown[at][1..].parse::<u64>().unwrap();
                assert!((0..said.unwrap_or(shown.len())).all(|at| line(at) == at as u64), "{shown:?}");
                assert!(
                    said.is_none_or(|at| at + 1 == shown.len() || line(at + 1) == at as u64 + number(at)),
                    "{shown:?}"
                );
            }
        }
    }

    #[test]
    fn a_place_of_which_nothing_is_made_is_encoded_as_before() {
        let node = FileId { device: 1, inode: 2 };
        let place =
            Place { path: "a".into(), exists: true, node, names: 1, content: None, keeps: Some(3), makes: None };
        assert_eq!(cbor::to_vec(&place).first(), Some(&0x86));
        let difference = Difference::new(vec!["+a".into()], 0, Vec::new()).unwrap();
        let makes = Some(Makes { content: Some(Digest::of(b"a\n")), difference, form: None });
        let made = Place { makes, ..place.clone() };
        assert_eq!(cbor::from_slice::<Place>(&cbor::to_vec(&made)).unwrap(), made);
        assert!(made.is_still(&place));
    }
}
