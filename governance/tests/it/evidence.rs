//! The conduct of a seat: seldom a false alarm, and never a shield. Its figures are in `conduct`.

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

#[test]
fn a_null_that_changes_on_the_way_costs_no_more_false_alarms() {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let mut alarms = 0;
    for _ in 0..HISTORIES {
        let (mut evidence, mut p0, mut was_bad) = (Evidence::under(P0), P0, false);
        for call in 0..500 {
            // Changed by somebody who has seen all that went before, and lowers it wherever there was a misfortune.
            if was_bad || call % 7 == 0 {
                p0 = [20, 100, P0, 600][if was_bad { 0 } else { usize::from(dice.per_mille() % 4) }];
                evidence = evidence.onwards_under(p0);
            }
            was_bad = dice.per_mille() < p0;
            evidence = evidence.after(was_bad);
        }
        alarms += u32::from(evidence.alarms());
    }
    println!("false alarms: {alarms} of {HISTORIES} histories of 500 calls under nulls that change (α = 0.001)");
    assert!(alarms <= HISTORIES / 1000, "{alarms}");
}

#[test]
fn another_null_takes_nothing_back() {
    let alarmed = (0..20).fold(Evidence::under(P0), |sum, _| sum.after(true));
    assert!(alarmed.onwards_under(900).alarms(), "an alarm stays");
    // Nearly alarmed, and given a lenient null: the next honest null finds what was won before still there.
    let nearly = (0..5).fold(Evidence::under(P0), |sum, _| sum.after(true));
    assert!(!nearly.alarms());
    let back = nearly.onwards_under(900).onwards_under(P0);
    assert_eq!(back, nearly);
    assert_eq!((nearly.onwards_under(10).p0(), nearly.onwards_under(10).calls()), (10, 5));
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
