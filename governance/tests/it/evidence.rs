//! The conduct of a seat: seldom a false alarm, and never a shield. Its figures are in `conduct`.

use ephor_governance::Evidence;

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
