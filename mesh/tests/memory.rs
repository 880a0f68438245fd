//! What strangers can make a node hold: counted byte by byte.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use common::{Node, acquainted, feed};
use ephor_mesh::handshake::Handshake;

/// Counts the bytes that are held.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it hands every call on to the system's allocator as it came, and only counts beside that.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller promises what the system's allocator wants.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps to the rules of `alloc`, which are those of the system's.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller promises what the system's allocator wants.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const STRANGERS: usize = 10_000;

/// The most bytes held for one stranger before its third message has come.
const MOST_HALF_OPEN: usize = 4096;
/// The most while its credential comes.
const MOST_UNPROVEN: usize = 12 * 1024;

/// The bytes held for each of `count` handshakes that have got as far as `open` takes them.
fn held(count: usize, mut open: impl FnMut() -> Handshake) -> usize {
    let mut handshakes: Vec<Handshake> = Vec::with_capacity(count);
    let before = HELD.load(Ordering::Relaxed);
    handshakes.extend(std::iter::repeat_with(&mut open).take(count));
    let after = HELD.load(Ordering::Relaxed);
    (after - before) / count + size_of::<Handshake>()
}

fn opened(bob: &mut Node, bytes: &[u8]) -> Handshake {
    let mut answerer = bob.answer();
    assert!(answerer.receive(Duration::ZERO, bytes, bob, &mut Vec::new()).unwrap().link.is_none());
    answerer
}

/// One test, since all that runs in this program is counted.
#[test]
fn ten_thousand_half_open_handshakes_hold_less_than_4_kb_each() {
    let (mut alice, mut bob) = acquainted();
    let (_, first) = alice.dial();
    let silent = held(STRANGERS, || bob.answer());
    let slow = held(STRANGERS, || opened(&mut bob, &first[..first.len() - 1]));
    let waiting = held(STRANGERS, || opened(&mut bob, &first));
    let unproven = held(100, || {
        let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
        let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
        let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
        feed(&mut answerer, &mut bob, &third[..third.len() - 1]).unwrap();
        answerer
    });
    println!(
        "bytes each: {silent} silent, {slow} within message 1, {waiting} after it, {unproven} within the credential"
    );
    assert!(silent.max(slow).max(waiting) < MOST_HALF_OPEN);
    assert!(unproven < MOST_UNPROVEN);
}
