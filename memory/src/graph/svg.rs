//! A part of the graph as a picture: SVG 1.1, one box for each entry, the earlier above the later.
//!
//! What stands in a box comes from strangers. It is written so that a reader sees every character of it
//! (`ephor_base::legible`), cut to what fits, and escaped for XML. A picture holds no script and loads nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use ephor_base::legible;

use super::{
    EdgeKind, Graph, Link,
    layout::{BOX, layout},
};
use crate::entry::{Entry, EntryKind, EntryRef};

/// The most entries of one picture. A person reads fewer.
pub const MOST_BOXES: usize = 400;
/// The most edges of one picture.
pub const MOST_LINKS: usize = 1_200;
/// The most characters of a box's text, and of the text shown when one points at it.
const IN_BOX: usize = 27;
const IN_TIP: usize = 400;
/// The height of the legend above the graph.
const LEGEND: f64 = 54.0;
/// The least width, so that the legend fits.
const LEAST_WIDTH: f64 = 860.0;

/// Why there is no picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PictureError {
    /// More than [`MOST_BOXES`].
    #[error("{0} entries in one picture, at most {MOST_BOXES}")]
    Entries(usize),
    /// More than [`MOST_LINKS`].
    #[error("{0} edges in one picture, at most {MOST_LINKS}")]
    Links(usize),
}

/// A part of a graph, small enough to be drawn.
#[derive(Clone, Debug)]
pub struct Picture {
    entries: Vec<Entry>,
    links: Vec<Link>,
    /// Each link as a pair of places in `entries`, the earlier first.
    ends: Vec<(usize, usize)>,
}

/// How a picture is drawn.
pub struct Drawing<'a> {
    /// What stands in the box of an entry.
    pub text: &'a dyn Fn(&Entry) -> String,
    /// What an entry's sequence number is appended to for the address that a click leads to, such as `#entry-`.
    pub address: &'a str,
    /// One side of a cut. Its entries have another frame, and edges that cross it stand out.
    pub cut: Option<&'a BTreeSet<EntryRef>>,
}

impl Picture {
    /// The picture of these entries and of all edges between them. What the graph does not hold is left out.
    ///
    /// # Errors
    /// [`PictureError`] if it would be too large to be read.
    pub fn new(graph: &Graph, ids: &BTreeSet<EntryRef>) -> Result<Self, PictureError> {
        if ids.len() > MOST_BOXES {
            return Err(PictureError::Entries(ids.len()));
        }
        let mut entries: Vec<Entry> = ids.iter().filter_map(|id| graph.entry(id)).cloned().collect();
        entries.sort_unstable_by_key(|entry| entry.moment);
        let places: BTreeMap<EntryRef, usize> = entries.iter().enumerate().map(|(at, entry)| (entry.id, at)).collect();
        let (mut links, mut ends) = (Vec::new(), Vec::new());
        for link in entries.iter().flat_map(|entry| graph.into_entry(&entry.id)) {
            if let (Some(from), Some(to)) = (places.get(&link.from), places.get(&link.to)) {
                ends.push((*from, *to));
                links.push(link);
            }
        }
        if links.len() > MOST_LINKS {
            return Err(PictureError::Links(links.len()));
        }
        Ok(Self { entries, links, ends })
    }

    /// The picture as the text of an SVG file.
    #[must_use]
    pub fn draw(&self, drawing: &Drawing<'_>) -> String {
        let layout = layout(self.entries.len(), &self.ends);
        let (width, height) = (layout.size.0.max(LEAST_WIDTH), layout.size.1 + LEGEND);
        let mut out = String::new();
        put(
            &mut out,
            format_args!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
                 font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\">\n\
                 <rect width=\"100%\" height=\"100%\" fill=\"#fbfbf9\"/>\n"
            ),
        );
        legend(&mut out);
        let shift = (width - layout.size.0) / 2.0;
        put(&mut out, format_args!("<g transform=\"translate({shift:.1} {LEGEND:.0})\">\n"));
        for (link, route) in self.links.iter().zip(&layout.routes) {
            edge(&mut out, link, route, drawing.cut);
        }
        for (entry, place) in self.entries.iter().zip(&layout.boxes) {
            node(&mut out, entry, *place, drawing);
        }
        out.push_str("</g>\n</svg>\n");
        out
    }
}

/// Fill and frame of a box.
const fn colours(kind: EntryKind) -> (&'static str, &'static str) {
    match kind {
        EntryKind::Message => ("#e3eefb", "#3b76b8"),
        EntryKind::ModelAnswer => ("#efe7fa", "#7a50b5"),
        EntryKind::Call => ("#fdf0d9", "#c07f16"),
        EntryKind::Outcome => ("#e4f4e4", "#3d8b46"),
        EntryKind::Ruling => ("#fbe4e2", "#bb4a3f"),
        EntryKind::Memory => ("#e0f3f3", "#2b8489"),
    }
}

/// Colour and dashes of an edge.
const fn stroke(kind: EdgeKind) -> (&'static str, &'static str) {
    match kind {
        EdgeKind::Causes => ("#45484d", "none"),
        EdgeKind::Enables => ("#3d8b46", "none"),
        EdgeKind::Follows => ("#b4b8bf", "2 4"),
        EdgeKind::Contradicts => ("#bb4a3f", "7 4"),
        EdgeKind::EvidenceFor => ("#3b76b8", "none"),
        EdgeKind::TriggeredBy => ("#7a50b5", "9 3 2 3"),
    }
}

fn legend(out: &mut String) {
    for (number, kind) in EntryKind::ALL.into_iter().enumerate() {
        let (fill, frame) = colours(kind);
        let x = 20 + number * 138;
        put(
            out,
            format_args!(
                "<rect x=\"{x}\" y=\"10\" width=\"14\" height=\"12\" rx=\"3\" fill=\"{fill}\" stroke=\"{frame}\"/>\
                 <text x=\"{}\" y=\"20\" fill=\"#45484d\">{}</text>\n",
                x + 20,
                kind.name()
            ),
        );
    }
    for (number, kind) in EdgeKind::ALL.into_iter().enumerate() {
        let (colour, dashes) = stroke(kind);
        let x = 20 + number * 138;
        put(
            out,
            format_args!(
                "<path d=\"M{x} 38h26\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\
                 <text x=\"{}\" y=\"42\" fill=\"#45484d\">{}</text>\n",
                x + 32,
                kind.name()
            ),
        );
    }
}

fn edge(out: &mut String, link: &Link, route: &[(f64, f64)], cut: Option<&BTreeSet<EntryRef>>) {
    let crosses = cut.is_some_and(|side| side.contains(&link.from) != side.contains(&link.to));
    let (colour, dashes) = stroke(link.kind);
    let (colour, width) = if crosses { ("#e0218a", 3.0) } else { (colour, 1.5) };
    let mut path = String::new();
    let mut before: Option<(f64, f64)> = None;
    for (x, y) in route {
        match before {
            None => put(&mut path, format_args!("M{x:.1} {y:.1}")),
            Some((from, above)) => {
                let middle = f64::midpoint(above, *y);
                put(&mut path, format_args!("C{from:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}"));
            }
        }
        before = Some((*x, *y));
    }
    let records: Vec<String> = link.shown_by.records().iter().map(ToString::to_string).collect();
    put(
        out,
        format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\">\
             <title>{} → {}: {}, shown by {}</title></path>\n",
            link.from.seq,
            link.to.seq,
            link.kind.name(),
            records.join(", ")
        ),
    );
    if let Some((x, y)) = before {
        put(out, format_args!("<path d=\"M{x:.1} {y:.1}l-4 -7h8z\" fill=\"{colour}\"/>\n"));
    }
}

/// A box. The text is in a picture of its own, which cuts off what is wider than its characters are counted for.
fn node(out: &mut String, entry: &Entry, (x, y): (f64, f64), drawing: &Drawing<'_>) {
    let (fill, frame) = colours(entry.kind);
    let beyond = drawing.cut.is_some_and(|side| side.contains(&entry.id));
    let (frame, width) = if beyond { ("#e0218a", 2.5) } else { (frame, 1.2) };
    let text = (drawing.text)(entry);
    let (left, top) = (x - BOX.0 / 2.0, y - BOX.1 / 2.0);
    put(
        out,
        format_args!(
            "<a href=\"{address}{seq}\"><g><title>{tip}</title>\
             <rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{w}\" height=\"{h}\" rx=\"8\" fill=\"{fill}\" stroke=\"{frame}\" stroke-width=\"{width}\"/>\
             <svg x=\"{tx:.1}\" y=\"{top:.1}\" width=\"{tw}\" height=\"{h}\">\
             <text y=\"17\" font-size=\"10\" fill=\"#6a6e75\">{kind} · {seq}</text>\
             <text y=\"35\" fill=\"#1f2124\">{shown}</text></svg></g></a>\n",
            address = escaped(drawing.address, usize::MAX),
            seq = entry.id.seq,
            tip = escaped(&text, IN_TIP),
            w = BOX.0,
            h = BOX.1,
            tx = left + 10.0,
            tw = BOX.0 - 2.0 * 10.0,
            kind = entry.kind.name(),
            shown = escaped(&text, IN_BOX),
        ),
    );
}

/// At most `most` characters of a text, every one of them seen, none of them markup.
fn escaped(text: &str, most: usize) -> String {
    // What is spelt out gets longer, so what is far beyond the end need not be looked at.
    let head: String = text.chars().take(most).collect();
    let line = legible::line(&head);
    let (shown, cut) = match line.char_indices().nth(most) {
        Some((end, _)) => (line.get(..end).unwrap_or_default(), true),
        None => (line.as_str(), head.len() < text.len()),
    };
    let mut out = String::with_capacity(shown.len());
    for c in shown.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    if cut {
        out.push('…');
    }
    out
}

fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _infallible = out.write_fmt(what);
}
