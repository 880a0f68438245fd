//! What happens in one simulation, made from its seed: a list of steps that can be cut down.

use std::time::Duration;

use crate::books::Bill;

/// Numbers that follow from a seed (SplitMix64, by G. Steele, D. Lea and C. Flood, 2014).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
    /// Below `bound`.
    pub(crate) fn roll(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// One of the processes that there are when it comes to that.
pub(crate) type Which = u64;

/// What happens from outside.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Kill(Which),
    Stop(Which),
    Say(Which, Word),
    /// Calls of several, one after another.
    Spree(Vec<(Which, Word)>),
    /// More messages than may wait.
    Flood(Which),
    /// A place is promised, and taken some steps later.
    Promise(Which),
    Put,
    Suspend(Which),
    Resume(Which),
    Add,
    Remove(Which),
    /// A seat gets another limit, of so many tokens.
    Grant(Which, u64),
    /// A seat is given up, with its purse. Whoever comes to it has another.
    Close(Which),
    /// One that is over acts as if it were not.
    Haunt(Which, Which),
    Turns(u64),
    Wait(Duration),
    /// The node dies, and boots.
    Crash,
}

/// What a worker does when it is told.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    Nothing,
    Normal,
    Error,
    Panic,
    Works(Duration),
    Link(Which),
    Unlink(Which),
    Monitor(Which),
    Demonitor,
    Kills(Which),
    Sends(Which),
    Asks(Which),
    /// Makes a call that takes so long: it waits for that, or lets it go on beside it.
    Calls(Bill, Duration, Waits),
}

/// Whether a process waits for its call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// It does, and the call is lost with it.
    Yes,
    /// The call goes on by itself, as at the door, and is cancelled when the process is fenced.
    No,
}

/// The steps of a seed.
pub(crate) fn of(seed: u64) -> Vec<Step> {
    let dice = &mut Dice(seed);
    let many = 20 + dice.roll(60);
    (0..many).map(|_| step(dice)).collect()
}

fn step(dice: &mut Dice) -> Step {
    let which = dice.roll(1 << 16);
    match dice.roll(52) {
        0..=3 => Step::Kill(which),
        4 => Step::Stop(which),
        5..=19 => Step::Say(which, word(dice)),
        20 => Step::Flood(which),
        21 | 22 => Step::Promise(which),
        23 | 24 => Step::Put,
        25 | 26 => Step::Suspend(which),
        27 | 28 => Step::Resume(which),
        29 | 30 => Step::Add,
        31 => Step::Remove(which),
        32 | 33 => Step::Haunt(which, dice.roll(1 << 16)),
        34..=36 => Step::Turns(1 + dice.roll(9)),
        40..=49 => Step::Spree((0..1 + dice.roll(6)).map(|_| (dice.roll(1 << 16), call(dice))).collect()),
        50 => Step::Grant(which, dice.roll(8000)),
        51 => Step::Close(which),
        37 | 38 => Step::Wait(Duration::from_millis(1 + dice.roll(4000))),
        _ => Step::Crash,
    }
}

fn call(dice: &mut Dice) -> Word {
    let estimate = dice.roll(900);
    // An estimate is as good as it is: too low, too high, or right.
    let actual = [estimate, dice.roll(900), estimate + dice.roll(300)];
    let bill = Bill { estimate, actual: actual[usize::try_from(dice.roll(3)).unwrap_or(0)] };
    let waits = if dice.roll(3) == 0 { Waits::Yes } else { Waits::No };
    Word::Calls(bill, Duration::from_millis(1 + dice.roll(9000)), waits)
}

fn word(dice: &mut Dice) -> Word {
    let which = dice.roll(1 << 16);
    match dice.roll(20) {
        0..=2 => Word::Nothing,
        3 => Word::Normal,
        4 | 5 => Word::Error,
        6 => Word::Panic,
        7 => Word::Works(Duration::from_millis(1 + dice.roll(8000))),
        8..=10 => Word::Link(which),
        11 => Word::Unlink(which),
        12..=14 => Word::Monitor(which),
        15 => Word::Demonitor,
        16 => Word::Kills(which),
        17 | 18 => Word::Sends(which),
        _ => Word::Asks(which),
    }
}
