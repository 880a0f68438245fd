//! Two nodes that dial each other: both come to the same link.

use ephor_mesh::{
    links::{Accepted, LinkId, Links, NotNow, Replaced},
    party::{Distrust, NodeId},
};
use proptest::prelude::*;

use crate::common::node_id;

/// Two names, the lower one first.
fn names() -> [NodeId; 2] {
    let mut names = [node_id(1), node_id(2)];
    names.sort_unstable();
    names
}

#[test]
fn a_peer_is_dialled_once_and_not_while_there_is_a_link() {
    let [low, high] = names();
    let mut links = Links::new(low);
    let dial = links.dial(high).unwrap();
    assert_eq!(links.dial(high), Err(NotNow::Dialling));
    links.ended(high, dial);
    let dial = links.dial(high).unwrap();
    links.reached(high, dial).unwrap();
    assert_eq!((links.link(high), links.dial(high)), (Some(dial), Err(NotNow::Linked)));
    links.ended(high, dial);
    assert_eq!(links.link(high), None);
}

#[test]
fn the_dial_of_the_lower_name_stands() {
    let [low, high] = names();
    let (mut lower, mut higher) = (Links::new(low), Links::new(high));
    let (stands, given_up) = (lower.dial(high).unwrap(), higher.dial(low).unwrap());
    assert_eq!(lower.may_accept(high), Err(Distrust::Crossed));
    assert_eq!(higher.may_accept(low), Ok(()));
    let Accepted { link, instead_of } = higher.accepted(low).unwrap();
    assert_eq!(instead_of, Some(given_up));
    assert_eq!(higher.reached(low, given_up), Err(Replaced), "an answer that comes after all changes nothing");
    lower.reached(high, stands).unwrap();
    assert_eq!((lower.link(high), higher.link(low)), (Some(stands), Some(link)));
}

#[test]
fn a_later_link_replaces_the_one_before() {
    let [low, high] = names();
    let mut links = Links::new(low);
    let first = links.accepted(high).unwrap();
    assert_eq!(links.may_accept(high), Ok(()));
    let second = links.accepted(high).unwrap();
    assert_eq!((first.instead_of, second.instead_of), (None, Some(first.link)));
    links.ended(high, first.link);
    assert_eq!(links.link(high), Some(second.link), "the end of the old one is not that of the new one");
}

/// What is under way on a connection.
#[derive(Clone, Copy)]
enum Way {
    /// The credential of the node that dialled.
    Credential,
    /// The answer of the other.
    Answer,
}

struct Connection {
    /// Who dialled, and its id there.
    by: usize,
    dial: LinkId,
    way: Option<Way>,
    /// The id at the node that was dialled.
    accepted: Option<LinkId>,
    /// Which ends have closed it.
    closed: [bool; 2],
}

/// One step of a connection. A close comes after what was sent before it.
fn step(nodes: &mut [Links; 2], names: [NodeId; 2], connections: &mut [Connection], at: usize) {
    let connection = &mut connections[at];
    let (by, other) = (connection.by, 1 - connection.by);
    match connection.way.take() {
        Some(Way::Credential) if nodes[other].may_accept(names[by]).is_ok() => {
            let Accepted { link, instead_of } = nodes[other].accepted(names[by]).unwrap();
            connection.accepted = Some(link);
            connection.way = Some(Way::Answer);
            let old = connections.iter_mut().find(|one| {
                let id = if one.by == other { Some(one.dial) } else { one.accepted };
                id.is_some() && id == instead_of
            });
            old.into_iter().for_each(|old| old.closed[other] = true);
        }
        Some(Way::Credential) => connection.closed[other] = true,
        Some(Way::Answer) if connection.closed[by] => {}
        Some(Way::Answer) => connection.closed[by] = nodes[by].reached(names[other], connection.dial).is_err(),
        None if connection.closed == [false, false] => {}
        None => {
            connection.closed = [true, true];
            nodes[by].ended(names[other], connection.dial);
            connection.accepted.into_iter().for_each(|link| nodes[other].ended(names[by], link));
        }
    }
}

proptest! {
    /// However dials and their answers cross, when nothing is under way any more both nodes have the same link, or none.
    #[test]
    fn both_come_to_the_same_link(steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>()), 1..60)) {
        let names = names();
        let mut nodes = names.map(Links::new);
        let mut connections: Vec<Connection> = Vec::new();
        let quiet = (0..1000).map(|at| (2, at));
        for (kind, pick) in steps.iter().map(|(kind, pick)| (*kind, pick.index(1000))).chain(quiet) {
            if kind >= 2 {
                if !connections.is_empty() {
                    let at = pick % connections.len();
                    step(&mut nodes, names, &mut connections, at);
                }
            } else if let Ok(dial) = nodes[usize::from(kind)].dial(names[1 - usize::from(kind)]) {
                let by = usize::from(kind);
                connections.push(Connection { by, dial, way: Some(Way::Credential), accepted: None, closed: [false; 2] });
            }
        }
        let ends = [nodes[0].link(names[1]), nodes[1].link(names[0])];
        let same = connections.iter().any(|one| ends[one.by] == Some(one.dial) && ends[1 - one.by] == one.accepted);
        prop_assert!(same || ends == [None, None], "{ends:?}");
    }
}
