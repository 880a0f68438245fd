//! A wheel of timers: pure, on whatever clock it is told the time of.
//!
//! A hierarchical timing wheel (G. Varghese and A. Lauck, "Hashed and hierarchical timing wheels", scheme 6 and 7): levels
//! of 64 slots, each slot of a level as wide as the whole level below. Setting and cancelling take the same few steps
//! however many timers there are; a timer moves down at most once a level before it fires.
//!
//! A timer never fires early. Those that are due together fire in the order of their deadlines, and of equal deadlines in the
//! order in which they were set. A clock that goes back fires nothing twice: time here never goes back.

use std::time::Duration;

/// The slots of a level: as many as a word has bits.
const SLOTS: u64 = 64;
/// The bits of a tick that one level looks at.
const BITS: u32 = 6;
/// The levels: 64⁶ milliseconds are two years. What is due later waits in the last level for as many rounds as it takes.
const LEVELS: u32 = 6;
/// Nowhere.
const NONE: u32 = u32::MAX;

/// So many cells at most are kept where no timer is set.
const KEPT: usize = 1024;

/// A timer that was set. It names that one for good: places are used again, names are not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimerId {
    place: u32,
    order: u64,
}

/// Timers by their deadlines, in ticks of a millisecond. `T` is what each of them is for.
#[derive(Debug)]
pub struct Wheel<T> {
    /// Everything up to this tick has fired.
    now: u64,
    levels: Vec<Level>,
    cells: Vec<Cell<T>>,
    /// The first cell that is free; each free one names the next.
    free: u32,
    set: u64,
    live: usize,
}

/// One level.
#[derive(Debug)]
struct Level {
    /// A bit for each slot that has timers.
    occupied: u64,
    /// The first timer of each slot.
    slots: [u32; SLOTS as usize],
}

/// A timer, or room for one.
#[derive(Debug)]
struct Cell<T> {
    before: u32,
    after: u32,
    level: u32,
    slot: u32,
    deadline: u64,
    /// Counts the timers that were set, so that equal deadlines have an order and each timer its name.
    order: u64,
    what: Option<T>,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Self::at(Duration::ZERO)
    }
}

impl<T> Wheel<T> {
    /// A wheel without timers, whose time begins at `now`.
    #[must_use]
    pub fn at(now: Duration) -> Self {
        let levels = (0..LEVELS).map(|_| Level { occupied: 0, slots: [NONE; SLOTS as usize] }).collect();
        Self { now: floor(now), levels, cells: Vec::new(), free: NONE, set: 0, live: 0 }
    }

    /// How many timers are set.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.live
    }

    /// Whether no timer is set.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Sets a timer for the time `deadline`. One whose time has come already fires with the next step.
    pub fn set(&mut self, deadline: Duration, what: T) -> TimerId {
        let (deadline, order) = (ceiling(deadline), self.set);
        self.set = self.set.wrapping_add(1);
        self.live = self.live.saturating_add(1);
        let place = self.take_cell();
        if let Some(cell) = self.cell(place) {
            (cell.deadline, cell.order, cell.what) = (deadline, order, Some(what));
        }
        self.file(place);
        TimerId { place, order }
    }

    /// Takes a timer back; gives what it was for, if it has not fired.
    pub fn cancel(&mut self, id: TimerId) -> Option<T> {
        self.at_mut(id)?;
        self.unfile(id.place);
        let what = self.give_cell(id.place);
        self.shrink();
        what
    }

    /// What a timer is for, if it has not fired.
    pub fn at_mut(&mut self, id: TimerId) -> Option<&mut T> {
        self.cell(id.place).filter(|cell| cell.order == id.order)?.what.as_mut()
    }

    /// When a step has something to do next: no timer is due before that. It may be earlier than the first deadline, if
    /// timers have to move down.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.upcoming().map(|(tick, ..)| Duration::from_millis(tick))
    }

    /// Time has come to `now`: takes out every timer whose deadline is not later.
    pub fn step(&mut self, now: Duration) -> Vec<T> {
        let (until, mut fired) = (floor(now).max(self.now), Vec::new());
        while let Some((tick, level, slot)) = self.upcoming().filter(|(tick, ..)| *tick <= until) {
            self.now = self.now.max(tick);
            self.empty(level, slot, until, &mut fired);
        }
        self.now = until;
        self.shrink();
        fired.sort_by_key(|(deadline, order, _)| (*deadline, *order));
        fired.into_iter().map(|(.., what)| what).collect()
    }

    /// The slot that comes next, and the tick it begins at.
    fn upcoming(&self) -> Option<(u64, u32, u32)> {
        (0..).zip(&self.levels).filter_map(|(level, wheel)| self.next_slot(level, wheel)).min()
    }

    /// The next slot of a level that has timers: those behind the hand belong to the next round.
    fn next_slot(&self, level: u32, wheel: &Level) -> Option<(u64, u32, u32)> {
        if wheel.occupied == 0 {
            return None;
        }
        let width = BITS.saturating_mul(level);
        let hand = (self.now >> width) % SLOTS;
        let turned = wheel.occupied.rotate_right(u32::try_from(hand).unwrap_or(0));
        let ahead = u64::from(turned.trailing_zeros());
        let slot = (hand.saturating_add(ahead)) % SLOTS;
        let tick = ((self.now >> width).saturating_add(ahead)) << width;
        Some((tick.max(self.now), level, u32::try_from(slot).unwrap_or(0)))
    }

    /// Takes all timers out of a slot: those that are due fire, the others are filed again, lower down.
    fn empty(&mut self, level: u32, slot: u32, until: u64, fired: &mut Vec<(u64, u64, T)>) {
        let mut at = self.head(level, slot);
        let mut later = Vec::new();
        while let Some(cell) = self.cells.get(at as usize) {
            let (next, due) = (cell.after, cell.deadline <= until);
            let (deadline, order) = (cell.deadline, cell.order);
            self.unfile(at);
            if !due {
                later.push(at);
            } else if let Some(what) = self.give_cell(at) {
                fired.push((deadline, order, what));
            }
            at = next;
        }
        later.into_iter().for_each(|place| self.file(place));
    }

    fn head(&self, level: u32, slot: u32) -> u32 {
        self.levels.get(level as usize).and_then(|level| level.slots.get(slot as usize)).copied().unwrap_or(NONE)
    }

    /// Puts a timer at the head of the slot it belongs to, seen from now.
    fn file(&mut self, place: u32) {
        let now = self.now;
        let Some(cell) = self.cell(place) else { return };
        let deadline = cell.deadline.max(now);
        // The highest bit in which deadline and now differ says how far away it is.
        let level = (63 - ((deadline ^ now) | 1).leading_zeros()) / BITS;
        let level = level.min(LEVELS - 1);
        // What is further away than the last level reaches comes round before it is due, and is filed again.
        let reach = now.saturating_add((SLOTS - 1) << (BITS * (LEVELS - 1)));
        let slot = u32::try_from((deadline.min(reach) >> BITS.saturating_mul(level)) % SLOTS).unwrap_or(0);
        (cell.level, cell.slot, cell.before) = (level, slot, NONE);
        let head = self.head(level, slot);
        if let Some(cell) = self.cell(place) {
            cell.after = head;
        }
        if let Some(next) = self.cell(head) {
            next.before = place;
        }
        self.point(level, slot, place);
    }

    /// Takes a timer out of its slot.
    fn unfile(&mut self, place: u32) {
        let Some(cell) = self.cell(place) else { return };
        let (before, after, level, slot) = (cell.before, cell.after, cell.level, cell.slot);
        if let Some(next) = self.cell(after) {
            next.before = before;
        }
        match self.cell(before) {
            Some(last) => last.after = after,
            None => self.point(level, slot, after),
        }
    }

    fn point(&mut self, level: u32, slot: u32, to: u32) {
        let Some(level) = self.levels.get_mut(level as usize) else { return };
        if let Some(head) = level.slots.get_mut(slot as usize) {
            *head = to;
        }
        let bit = 1u64 << slot;
        level.occupied = if to == NONE { level.occupied & !bit } else { level.occupied | bit };
    }

    fn cell(&mut self, place: u32) -> Option<&mut Cell<T>> {
        self.cells.get_mut(place as usize)
    }

    fn take_cell(&mut self) -> u32 {
        let place = self.free;
        if let Some(cell) = self.cell(place) {
            let next = cell.after;
            self.free = next;
            return place;
        }
        let new = u32::try_from(self.cells.len()).unwrap_or(NONE);
        let (before, after, level, slot) = (NONE, NONE, 0, 0);
        self.cells.push(Cell { before, after, level, slot, deadline: 0, order: 0, what: None });
        new
    }

    fn give_cell(&mut self, place: u32) -> Option<T> {
        let free = self.free;
        let cell = self.cells.get_mut(place as usize)?;
        let what = cell.what.take()?;
        cell.after = free;
        self.free = place;
        self.live = self.live.saturating_sub(1);
        Some(what)
    }

    /// Gives the room of many timers back once there are none.
    fn shrink(&mut self) {
        if self.live == 0 && self.cells.len() > KEPT {
            (self.cells, self.free) = (Vec::new(), NONE);
        }
    }
}

/// The last tick that has begun.
fn floor(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The first tick that is not earlier.
fn ceiling(time: Duration) -> u64 {
    let whole = floor(time);
    if Duration::from_millis(whole) < time { whole.saturating_add(1) } else { whole }
}
