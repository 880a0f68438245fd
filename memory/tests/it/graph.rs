//! The causal graph.

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::Seq;
use ephor_memory::{
    entry::{Entry, EntryRef, Moment},
    graph::{
        Capacity, EdgeKind, EdgeKinds, Evidence, Graph, GraphError, Link, MOST_DEGREE, MOST_EVIDENCE,
        svg::{Drawing, MOST_BOXES, Picture, PictureError},
        walk::{Bounds, Route, WalkEnd},
    },
};
use proptest::prelude::*;

use crate::common::{OTHER, OWN, entry, foreign, graph, id, link, session};

fn with(entries: u64, edges: &[(u64, u64, EdgeKind)]) -> Graph {
    let mut graph = graph();
    (0..entries).for_each(|seq| graph.add(entry(seq, 0)).unwrap());
    edges.iter().for_each(|(from, to, kind)| graph.link(&link(id(*from), id(*to), *kind)).unwrap());
    graph
}

fn found(steps: &[ephor_memory::graph::walk::Step]) -> Vec<u64> {
    steps.iter().map(|step| step.entry.seq.0).collect()
}

#[test]
fn an_edge_runs_forward_or_not_at_all() {
    let mut graph = with(3, &[]);
    let backward = graph.link(&link(id(2), id(1), EdgeKind::Causes));
    assert_eq!(backward, Err(GraphError::Backward { from: Seq(2), to: Seq(1) }));
    let itself = graph.link(&link(id(1), id(1), EdgeKind::Follows));
    assert_eq!(itself, Err(GraphError::Backward { from: Seq(1), to: Seq(1) }));
    assert_eq!(graph.link(&link(id(1), id(7), EdgeKind::Causes)), Err(GraphError::Unknown(id(7))));
    assert_eq!(graph.edges(), 0);
    graph.link(&link(id(1), id(2), EdgeKind::Causes)).unwrap();
    assert_eq!(graph.edges(), 1);
}

#[test]
fn an_entry_of_another_log_stands_right_before_the_one_that_names_it() {
    let mut graph = with(10, &[]);
    let elsewhere = Entry { id: foreign(500), moment: Moment::foreign(foreign(500), Seq(6)), ..entry(0, 0) };
    graph.add(elsewhere.clone()).unwrap();
    graph.link(&link(id(5), foreign(500), EdgeKind::Causes)).unwrap();
    graph.link(&link(foreign(500), id(6), EdgeKind::Causes)).unwrap();
    assert!(matches!(graph.link(&link(foreign(500), id(5), EdgeKind::Causes)), Err(GraphError::Backward { .. })));
    assert_eq!(found(&graph.why(&id(6), &Bounds::default()).unwrap().steps), [500, 5]);
    // Neither can an entry of another log have a moment of ours, nor ours one of theirs.
    let posing = Entry { id: foreign(1), moment: Moment::own(Seq(11)), ..entry(0, 0) };
    assert_eq!(graph.add(posing), Err(GraphError::Misplaced(foreign(1))));
    let shifted = Entry { moment: Moment::own(Seq(12)), ..entry(11, 0) };
    assert_eq!(graph.add(shifted), Err(GraphError::Misplaced(id(11))));
    assert_ne!(OTHER, OWN);
}

#[test]
fn an_entry_is_taken_once_and_not_changed() {
    let mut graph = with(2, &[]);
    graph.add(entry(1, 0)).unwrap();
    assert_eq!(graph.len(), 2);
    assert_eq!(graph.add(entry(1, 9)), Err(GraphError::Taken(id(1))));
    let same_place = EntryRef { leaf: ephor_base::Digest::of(b"other"), ..id(1) };
    assert_eq!(graph.add(Entry { id: same_place, ..entry(1, 0) }), Err(GraphError::Taken(same_place)));
}

#[test]
fn a_graph_holds_no_more_than_it_was_made_for() {
    let mut graph = Graph::new(OWN, Capacity::new(2, 1).unwrap());
    graph.add(entry(0, 0)).unwrap();
    graph.add(entry(1, 0)).unwrap();
    assert_eq!(graph.add(entry(2, 0)), Err(GraphError::Full(2)));
    graph.link(&link(id(0), id(1), EdgeKind::Causes)).unwrap();
    assert_eq!(graph.link(&link(id(0), id(1), EdgeKind::Follows)), Err(GraphError::Full(1)));
    // An erasure makes room.
    graph.erase(&session(0));
    graph.add(entry(2, 0)).unwrap();
    assert!(matches!(Capacity::new(1 << 32, 1), Err(GraphError::Capacity(_))));
}

#[test]
fn an_edge_names_the_records_that_show_it() {
    assert_eq!(Evidence::new(&[]), Err(GraphError::NoEvidence));
    let many: Vec<Seq> = (0..20).map(Seq).collect();
    assert_eq!(Evidence::new(&many), Err(GraphError::TooMuchEvidence(20)));
    let mut graph = with(2, &[]);
    for record in [9, 3, 3, 7] {
        let link = Link { shown_by: Evidence::one(Seq(record)), ..link(id(0), id(1), EdgeKind::Causes) };
        graph.link(&link).unwrap();
    }
    let [only] = graph.into_entry(&id(1)).try_into().unwrap();
    assert_eq!(only.shown_by.records(), [Seq(3), Seq(7), Seq(9)]);
    for record in 10..30 {
        let link = Link { shown_by: Evidence::one(Seq(record)), ..link(id(0), id(1), EdgeKind::Causes) };
        graph.link(&link).unwrap();
    }
    let [only] = graph.out_of_entry(&id(0)).try_into().unwrap();
    assert_eq!(only.shown_by.records().len(), MOST_EVIDENCE);
    assert_eq!(only.shown_by.records()[0], Seq(3), "the earliest stay");
}

/// 0 → 1 → 3 → 5, 0 → 2 → 3, and 4 beside them, which only comes before 5.
fn diamond() -> Graph {
    use EdgeKind::{Causes, Enables, Follows, TriggeredBy};
    with(6, &[(0, 1, Causes), (0, 2, TriggeredBy), (1, 3, Causes), (2, 3, Enables), (3, 5, Causes), (4, 5, Follows)])
}

#[test]
fn why_finds_all_that_led_to_an_entry() {
    let graph = diamond();
    let walk = graph.why(&id(5), &Bounds::default()).unwrap();
    assert_eq!(found(&walk.steps), [3, 1, 2, 0]);
    assert_eq!(walk.steps.iter().map(|step| step.depth).collect::<Vec<_>>(), [1, 2, 2, 3]);
    assert_eq!(walk.end, WalkEnd::Complete);
    assert_eq!(walk.steps[2].via, link(id(2), id(3), EdgeKind::Enables));
    let all = Bounds { edges: EdgeKinds::ALL, ..Bounds::default() };
    assert_eq!(found(&graph.why(&id(5), &all).unwrap().steps), [3, 4, 1, 2, 0]);
    assert_eq!(graph.why(&id(6), &all), Err(GraphError::Unknown(id(6))));
}

#[test]
fn a_walk_says_that_its_bounds_cut_it_short() {
    let graph = diamond();
    let shallow = graph.effects(&id(0), &Bounds { depth: 1, ..Bounds::default() }).unwrap();
    assert_eq!((found(&shallow.steps), shallow.end), (vec![1, 2], WalkEnd::Cut));
    let few = graph.effects(&id(0), &Bounds { entries: 3, ..Bounds::default() }).unwrap();
    assert_eq!((found(&few.steps), few.end), (vec![1, 2, 3], WalkEnd::Cut));
    let enough = graph.effects(&id(0), &Bounds { depth: 3, entries: 4, ..Bounds::default() }).unwrap();
    assert_eq!((found(&enough.steps), enough.end), (vec![1, 2, 3, 5], WalkEnd::Complete));
}

#[test]
fn a_path_is_a_shortest_one() {
    let mut graph = diamond();
    let Route::Found(route) = graph.path(&id(0), &id(5), &Bounds::default()).unwrap() else { panic!("there is one") };
    assert_eq!(route.len(), 3);
    assert_eq!((route[0].from, route[2].to), (id(0), id(5)));
    assert!(route.windows(2).all(|pair| pair[0].to == pair[1].from));
    assert_eq!(graph.path(&id(4), &id(5), &Bounds::default()).unwrap(), Route::None, "follows is no cause");
    assert_eq!(graph.path(&id(5), &id(0), &Bounds::default()).unwrap(), Route::None);
    assert_eq!(graph.path(&id(0), &id(5), &Bounds { depth: 2, ..Bounds::default() }).unwrap(), Route::Cut);
    assert_eq!(graph.path(&id(3), &id(3), &Bounds::default()).unwrap(), Route::Found(vec![]));
    // What lies before the start cannot lie between, so a long past does not use the bounds up.
    let past: Vec<(u64, u64, EdgeKind)> = (1..50).map(|seq| (seq - 1, seq, EdgeKind::Causes)).collect();
    let mut long = with(52, &past);
    long.link(&link(id(49), id(51), EdgeKind::Causes)).unwrap();
    let few = Bounds { entries: 5, ..Bounds::default() };
    assert_eq!(long.path(&id(50), &id(51), &few).unwrap(), Route::None);
    graph.link(&link(id(0), id(5), EdgeKind::EvidenceFor)).unwrap();
    let direct = vec![link(id(0), id(5), EdgeKind::EvidenceFor)];
    assert_eq!(graph.path(&id(0), &id(5), &Bounds::default()).unwrap(), Route::Found(direct));
}

#[test]
fn a_common_cause_is_the_latest() {
    use EdgeKind::Causes;
    let graph = with(6, &[(0, 1, Causes), (1, 2, Causes), (1, 3, Causes), (2, 4, Causes), (3, 5, Causes)]);
    let common = graph.common_cause(&id(4), &id(5), &Bounds::default()).unwrap();
    assert_eq!((common.entry, common.end), (Some(id(1)), WalkEnd::Complete));
    assert_eq!(graph.common_cause(&id(0), &id(5), &Bounds::default()).unwrap().entry, None);
}

#[test]
fn erasing_a_session_leaves_nothing_of_it() {
    let mut graph = graph();
    for seq in 0..30 {
        graph.add(entry(seq, u8::try_from(seq % 3).unwrap())).unwrap();
    }
    for seq in 1..30 {
        graph.link(&link(id(seq - 1), id(seq), EdgeKind::Follows)).unwrap();
        graph.link(&link(id(0), id(seq), EdgeKind::Causes)).unwrap();
    }
    let erased = graph.erase(&session(1));
    assert_eq!(erased, (0..30).filter(|seq| seq % 3 == 1).map(id).collect::<Vec<_>>());
    assert_eq!(graph.len(), 20);
    assert!(erased.iter().all(|gone| graph.entry(gone).is_none() && graph.into_entry(gone).is_empty()));
    let left: Vec<Link> = graph.entries().flat_map(|entry| graph.out_of_entry(&entry.id)).collect();
    assert_eq!(left.len(), graph.edges());
    assert!(left.iter().all(|link| link.from.seq.0 % 3 != 1 && link.to.seq.0 % 3 != 1));
    assert!(graph.erase(&session(1)).is_empty());
    assert_eq!(graph.session(&session(1)).count(), 0);
    // petgraph gives the indices of what is gone to what comes: the old stays what it was.
    for seq in 30..60 {
        graph.add(entry(seq, 5)).unwrap();
    }
    assert!(graph.entries().map(|entry| entry.id.seq.0).is_sorted());
    assert_eq!(found(&graph.effects(&id(0), &Bounds::default()).unwrap().steps).len(), 19);
}

/// Entries, edges as pairs of places, and the order in which both are added.
type Shape = (usize, Vec<(usize, usize, u8)>, Vec<usize>);

fn shape() -> impl Strategy<Value = Shape> {
    (2_usize..40).prop_flat_map(|entries| {
        let edges = prop::collection::vec((0..entries, 0..entries, 0_u8..6), 0..120);
        (Just(entries), edges, Just((0..entries).collect::<Vec<_>>()).prop_shuffle())
    })
}

fn built(edges: &[(usize, usize, u8)], order: &[usize]) -> Graph {
    let mut graph = graph();
    for at in order {
        graph.add(entry(*at as u64, u8::try_from(at % 4).unwrap())).unwrap();
    }
    for (from, to, kind) in edges {
        let link = link(id(*from as u64), id(*to as u64), EdgeKind::ALL[usize::from(*kind)]);
        assert_eq!(graph.link(&link).is_ok(), from < to);
    }
    graph
}

proptest! {
    #[test]
    fn walks_agree_with_a_search_through_all_edges((entries, edges, order) in shape(), start in any::<prop::sample::Index>()) {
        let graph = built(&edges, &order);
        let start = start.index(entries);
        let all = Bounds { edges: EdgeKinds::ALL, ..Bounds::default() };
        let mut reached: BTreeMap<usize, u32> = BTreeMap::from([(start, 0)]);
        let mut ring = BTreeSet::from([start]);
        for depth in 1.. {
            let next: BTreeSet<usize> = edges.iter().filter(|(a, b, _)| a < b && ring.contains(a)).map(|(_, b, _)| *b).collect();
            ring = next.into_iter().filter(|node| reached.try_insert_if_absent(*node, depth)).collect();
            if ring.is_empty() { break; }
        }
        reached.remove(&start);
        let walk = graph.effects(&id(start as u64), &all).unwrap();
        let told: BTreeMap<usize, u32> = walk.steps.iter().map(|s| (usize::try_from(s.entry.seq.0).unwrap(), s.depth)).collect();
        prop_assert_eq!(&told, &reached);
        for (node, depth) in reached {
            let Route::Found(route) = graph.path(&id(start as u64), &id(node as u64), &all).unwrap() else { panic!("no path") };
            prop_assert_eq!(route.len(), depth as usize);
            let back = graph.why(&id(node as u64), &all).unwrap();
            prop_assert!(back.steps.iter().any(|step| step.entry == id(start as u64)));
        }
    }

    #[test]
    fn equal_graphs_have_equal_bytes_however_they_came_about((entries, edges, order) in shape()) {
        let sorted: Vec<usize> = (0..entries).collect();
        let one = built(&edges, &sorted);
        let mut reversed = edges.clone();
        reversed.reverse();
        let mut other = built(&reversed, &order);
        prop_assert_eq!(one.to_bytes(), other.to_bytes());
        // And what was there and is erased leaves no trace.
        let mut with_more = built(&edges, &sorted);
        with_more.erase(&session(2));
        other.erase(&session(2));
        prop_assert_eq!(with_more.to_bytes(), other.to_bytes());
    }

    #[test]
    fn a_picture_is_well_formed_whatever_stands_in_it((_, edges, order) in shape(), text in "\\PC{0,60}|.{0,60}") {
        let graph = built(&edges, &order);
        let picture = Picture::new(&graph, &graph.entries().map(|entry| entry.id).collect()).unwrap();
        let svg = picture.draw(&Drawing { text: &|_| text.clone(), address: "#entry-", cut: None });
        let depth = nesting(&svg);
        prop_assert_eq!(depth, Ok(()));
    }
}

trait TryInsertIfAbsent {
    fn try_insert_if_absent(&mut self, key: usize, value: u32) -> bool;
}

impl TryInsertIfAbsent for BTreeMap<usize, u32> {
    fn try_insert_if_absent(&mut self, key: usize, value: u32) -> bool {
        let is_new = !self.contains_key(&key);
        self.entry(key).or_insert(value);
        is_new
    }
}

/// Whether tags are balanced and text holds no markup: what an XML parser would stumble over first.
fn nesting(svg: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        if text.contains('>') {
            return Err(format!("a > in text: {text}"));
        }
        for entity in text.split('&').skip(1) {
            if !["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|known| entity.starts_with(known)) {
                return Err(format!("a bare & in text: {text}"));
            }
        }
        let end = rest[at..].find('>').ok_or("a tag without an end")? + at;
        let tag = &rest[at + 1..end];
        if !tag.matches('"').count().is_multiple_of(2) {
            return Err(format!("an open quote: {tag}"));
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes another"));
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split([' ', '\n']).next().unwrap_or_default());
        }
        rest = &rest[end + 1..];
    }
    if open.is_empty() { Ok(()) } else { Err(format!("left open: {open:?}")) }
}

#[test]
fn what_a_stranger_says_is_text_in_a_picture() {
    let graph = diamond();
    let ids: BTreeSet<EntryRef> = graph.entries().map(|entry| entry.id).collect();
    let picture = Picture::new(&graph, &ids).unwrap();
    let evil = "</text><script>alert('&')</script>\u{202e}\u{0}\u{ffff} \"x\" onload=\"y\"";
    let cut = BTreeSet::from([id(0), id(1)]);
    let svg = picture.draw(&Drawing { text: &|_| evil.to_owned(), address: "#entry-", cut: Some(&cut) });
    assert_eq!(nesting(&svg), Ok(()));
    assert!(
        !svg.contains("<script") && !svg.contains('\u{202e}') && !svg.contains('\u{0}') && !svg.contains('\u{ffff}')
    );
    assert!(svg.contains("&lt;script&gt;alert(&#39;&amp;&#39;)") && svg.contains("\\u202e\\u0000\\uffff"));
    assert!(svg.contains("href=\"#entry-5\"") && svg.contains("3 → 5: causes, shown by 5"));
    assert_eq!(svg.matches("<g><title>").count(), 6);
    // 0 → 2 and 1 → 3 cross the cut.
    assert_eq!(svg.matches("stroke-width=\"3\"").count(), 2);
    assert!(
        picture.draw(&Drawing { text: &|_| "n".repeat(99), address: "", cut: None }).contains(&("n".repeat(27) + "…"))
    );
}

#[test]
fn boxes_of_a_picture_do_not_overlap_and_edges_go_down() {
    let mut graph = graph();
    (0..60).for_each(|seq| graph.add(entry(seq, 0)).unwrap());
    for seq in 1..60_u64 {
        graph.link(&link(id(seq * 7 % seq), id(seq), EdgeKind::Causes)).unwrap();
        graph.link(&link(id(seq / 2), id(seq), EdgeKind::Enables)).unwrap();
    }
    let picture = Picture::new(&graph, &graph.entries().map(|entry| entry.id).collect()).unwrap();
    let svg = picture.draw(&Drawing { text: &|entry| entry.id.seq.to_string(), address: "#", cut: None });
    let number = |text: &str, name: &str| -> f64 {
        let value = text.split_once(&format!(" {name}=\"")).unwrap().1.split_once('"').unwrap().0;
        value.parse().unwrap()
    };
    let boxes: Vec<(f64, f64)> =
        svg.lines().filter(|line| line.starts_with("<a ")).map(|line| (number(line, "x"), number(line, "y"))).collect();
    assert_eq!(boxes.len(), 60);
    for (at, (x, y)) in boxes.iter().enumerate() {
        for (other_x, other_y) in &boxes[at + 1..] {
            assert!((x - other_x).abs() >= 216.0 || (y - other_y).abs() >= 46.0, "{x} {y} and {other_x} {other_y}");
        }
    }
    for link in graph.entries().flat_map(|entry| graph.out_of_entry(&entry.id)) {
        let y = |entry: &EntryRef| boxes[usize::try_from(entry.seq.0).unwrap()].1;
        assert!(y(&link.from) < y(&link.to));
    }
}

#[test]
fn near_entries_have_the_weight_of_the_strongest_way() {
    use EdgeKind::{Causes, Contradicts, Enables, Follows};
    let graph = with(
        7,
        &[
            (0, 1, Follows),
            (0, 1, Causes),
            (0, 1, Contradicts),
            (1, 2, Causes),
            (0, 2, Follows),
            (2, 3, Causes),
            (4, 5, Causes),
            (0, 6, Enables),
        ],
    );
    let near = |seq, allows: &dyn Fn(u64) -> bool| -> Vec<(u64, f64)> {
        let near = graph.near(&id(seq), 2, 9, 0.5, |entry| allows(entry.id.seq.0));
        near.into_iter().map(|(entry, weight)| (entry.seq.0, weight)).collect()
    };
    assert_eq!(near(0, &|_| true), [(1, 0.5), (6, 0.375), (2, 0.25), (3, 0.0625)]);
    assert_eq!(near(2, &|_| true), [(1, 0.5), (3, 0.5), (0, 0.25)]);
    assert_eq!(near(0, &|seq| seq != 1), [(6, 0.375), (2, 0.125), (3, 0.0625)], "no way goes by what is not allowed");
    assert_eq!(graph.near(&id(0), 2, 1, 0.5, |_| true), [(id(1), 0.5)]);
    assert!(graph.near(&id(9), 2, 9, 0.5, |_| true).is_empty());
}

#[test]
fn what_is_done_with_one_entry_is_bounded_by_its_edges() {
    let most = u64::try_from(MOST_DEGREE).unwrap();
    let mut graph = graph();
    (0..most + 2).for_each(|seq| graph.add(entry(seq, u8::try_from(seq.min(1)).unwrap())).unwrap());
    (1..=most).for_each(|seq| graph.link(&link(id(0), id(seq), EdgeKind::Causes)).unwrap());
    let more = link(id(0), id(most + 1), EdgeKind::Causes);
    assert_eq!(graph.link(&more), Err(GraphError::Crowded(id(0))));
    // A record more for an edge that is there is no more edge.
    graph.link(&Link { shown_by: Evidence::one(Seq(7)), ..link(id(0), id(3), EdgeKind::Causes) }).unwrap();
    // The latest are near.
    let near = graph.near(&id(0), 1, 9, 0.5, |_| true);
    assert_eq!(near.len(), 9);
    assert!(near.iter().all(|(entry, _)| entry.seq.0 > most - 64));
    assert_eq!(graph.erase(&session(1)).len(), usize::try_from(most).unwrap() + 1);
    assert_eq!(graph.edges(), 0);
}

#[test]
fn a_picture_that_no_one_could_read_is_refused() {
    let most = u64::try_from(MOST_BOXES).unwrap();
    let graph = with(most + 1, &[]);
    let ids: BTreeSet<EntryRef> = graph.entries().map(|entry| entry.id).collect();
    assert_eq!(Picture::new(&graph, &ids).unwrap_err(), PictureError::Entries(MOST_BOXES + 1));
    let none = Picture::new(&graph, &BTreeSet::new()).unwrap();
    assert_eq!(nesting(&none.draw(&Drawing { text: &|_| String::new(), address: "", cut: None })), Ok(()));
}
