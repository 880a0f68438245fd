//! The conduct of a seat: seldom a false alarm, and never a shield.

use ephor_governance::Evidence;

/// The null, per mille, and the α that the alarm states.
const P0: u16 = 250;
const HISTORIES: u32 = 10_000;

/// xorshift64*, seeded.
struct Dice(u64);

impl Dice {
    fn per_mille(&mut self) -> u16 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        u16::try_from((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % 1000).unwrap()
    }
}

fn honest(length: u32) -> Evidence {
    (0..length).fold(Evidence::under(P0), |sum, n| sum.after(n % 5 == 0))
}

fn calls_to_alarm(mut evidence: Evidence, bad_per_mille: u16, dice: &mut Dice) -> Option<u32> {
    (1..=20_000).find(|_| {
        evidence = evidence.after(dice.per_mille() < bad_per_mille);
        evidence.alarms()
    })
}

#[test]
fn of_ten_thousand_honest_histories_at_most_one_in_a_thousand_alarms() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut alarms = 0;
    for _ in 0..HISTORIES {
        // Honest at the very edge of the null, the worst there is; looked at after every call.
        let end = (0..1000).fold(Evidence::under(P0), |sum, _| sum.after(dice.per_mille() < P0));
        alarms += u32::from(end.alarms());
    }
    println!("false alarms: {alarms} of {HISTORIES} histories of 1,000 calls at p0 = 0.25 (α = 0.001)");
    assert!(alarms <= HISTORIES / 1000, "{alarms}");
}

#[test]
fn abuse_is_found_also_after_a_long_honest_history() {
    println!("honest calls before | median calls to alarm at a bad rate of 40 % | 60 % | 80 % | 100 %");
    let mut dice = Dice(7);
    for before in [0, 100, 1000, 10_000, 100_000] {
        let start = honest(before);
        let median = |bad: u16, dice: &mut Dice| {
            let mut delays: Vec<u32> = (0..51).map(|_| calls_to_alarm(start, bad, dice).unwrap_or(u32::MAX)).collect();
            delays.sort_unstable();
            delays[25]
        };
        let delays = [400, 600, 800, 1000].map(|bad| median(bad, &mut dice));
        println!("{before:>19} | {delays:?}");
        assert!(delays[3] <= 25, "{before}: {delays:?}");
        assert!(delays[1] < 200, "{before}: {delays:?}");
    }
}

#[test]
fn an_alarm_stays_and_the_first_calls_are_no_alarm() {
    let alarmed = (0..20).fold(Evidence::default(), |sum, _| sum.after(true));
    assert!(alarmed.alarms());
    assert!((0..100_000).fold(alarmed, |sum, _| sum.after(false)).alarms());
    assert!(!(0..5).fold(Evidence::default(), |sum, _| sum.after(true)).alarms());
}

#[test]
fn no_null_makes_it_panic() {
    for p0 in [0, 1, 500, 900, 999, u16::MAX] {
        let end = (0..2000).fold(Evidence::under(p0), |sum, n| sum.after(n % 2 == 0));
        assert_eq!(end.calls(), 2000);
    }
}
