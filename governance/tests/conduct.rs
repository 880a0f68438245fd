//! The evidence about conduct, as figures: how often it alarms falsely, and how soon it finds what drifts. The picture of it in
//! `docs/conduct.svg` is drawn here; `EPHOR_KEEP_PICTURES=1` keeps a new one.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

use std::fmt::Write as _;

use ephor_governance::Evidence;

/// Histories behind each point of a curve.
const LIVES: usize = 401;
/// The null of the curves, per mille.
const P0: u16 = 250;
/// Nobody waits longer.
const MOST_CALLS: u32 = 20_000;
/// How many honest calls came before.
const BEFORE: [u32; 3] = [0, 1_000, 100_000];

/// splitmix64, seeded: the same on every machine.
struct Dice(u64);

impl Dice {
    fn is_bad(&mut self, per_million: u64) -> bool {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)) % 1_000_000 < per_million
    }
}

/// A seat that did well for so long: a tenth of its calls bad, spread evenly.
fn after_honest(calls: u32) -> Evidence {
    (0..calls).fold(Evidence::under(P0), |sum, call| sum.after(call % 10 == 9))
}

/// The median of calls from the drift on until the alarm; `rate` says how many of a million calls are bad at each.
fn delay(from: Evidence, seed: u64, rate: impl Fn(u32) -> u64) -> u32 {
    let mut dice = Dice(seed);
    let mut life = || {
        let mut evidence = from;
        let alarms = |call: &u32| {
            evidence = evidence.after(dice.is_bad(rate(*call)));
            evidence.alarms()
        };
        (1..=MOST_CALLS).find(alarms).unwrap_or(MOST_CALLS)
    };
    let mut delays: Vec<u32> = (0..LIVES).map(|_| life()).collect();
    delays.sort_unstable();
    delays[LIVES / 2]
}

/// A line of a picture: what it is called, and its points.
struct Curve {
    name: String,
    points: Vec<(u32, u32)>,
}

/// The rate jumps to so many per cent.
fn jumps() -> Vec<Curve> {
    let curve = |before: u32| {
        let from = after_honest(before);
        let point = |percent: u32| (percent, delay(from, u64::from(percent), |_| u64::from(percent) * 10_000));
        Curve { name: format!("{before} honest calls before"), points: (30..=100).step_by(5).map(point).collect() }
    };
    BEFORE.map(curve).into()
}

/// The rate climbs from a tenth by so many per mille with each hundred calls. Counted from where it leaves the null.
fn drifts() -> Vec<Curve> {
    let curve = |before: u32| {
        let from = after_honest(before);
        let point = |speed: u32| {
            let rate = |call: u32| (100_000 + u64::from(call) * u64::from(speed) * 10).min(1_000_000);
            let leaves = u32::try_from(u64::from(P0 - 100) * 100 / u64::from(speed)).unwrap();
            (speed, delay(from, u64::from(speed), rate).saturating_sub(leaves))
        };
        let speeds = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];
        Curve { name: format!("{before} honest calls before"), points: speeds.map(point).into() }
    };
    BEFORE.map(curve).into()
}

fn table(title: &str, across: &str, curves: &[Curve]) -> String {
    let mut text = format!("{title}\n{across:>32}");
    let line = |text: &mut String, numbers: &mut dyn Iterator<Item = u32>| {
        numbers.for_each(|number| write!(text, "{number:>7}").unwrap());
        text.push('\n');
    };
    line(&mut text, &mut curves[0].points.iter().map(|(x, _)| *x));
    for curve in curves {
        write!(text, "{:>32}", curve.name).unwrap();
        line(&mut text, &mut curve.points.iter().map(|(_, y)| *y));
    }
    text
}

/// A place on a logarithmic axis from 1 to 10,000, in pixels. In whole steps of an eighth of an octave, so that no machine
/// rounds it otherwise.
fn log_pixels(number: u32, pixels: u32) -> u32 {
    let (mut eighths, mut reach) = (0_u32, 1_000_000_u64);
    while reach < u64::from(number.max(1)) * 1_000_000 {
        // The eighth root of two.
        reach = reach * 1_090_508 / 1_000_000;
        eighths += 1;
    }
    // 10,000 is 106 eighths of octaves.
    eighths.min(106) * pixels / 106
}

const COLOURS: [&str; 3] = ["#1b6ca8", "#d1772b", "#4a7c3a"];
const PANEL: u32 = 300;

/// One panel: an axis of calls on a logarithmic scale, and the curves, with every number across at its `place`.
fn panel(left: u32, [title, across]: [&str; 2], marks: &[u32], curves: &[Curve], place: impl Fn(u32) -> u32) -> String {
    let (top, bottom) = (50, 50 + PANEL);
    let mut text =
        format!("<g font-family='sans-serif' font-size='12' fill='#333'>\n<text x='{left}' y='30'>{title}</text>\n");
    for calls in [1, 10, 100, 1_000, 10_000] {
        let y = bottom - log_pixels(calls, PANEL);
        writeln!(
            text,
            "<path d='M{left} {y}h{PANEL}' stroke='#ddd'/><text x='{}' y='{}' text-anchor='end'>{calls}</text>",
            left - 6,
            y + 4
        )
        .unwrap();
    }
    for (x, _) in curves[0].points.iter().filter(|(x, _)| marks.contains(x)) {
        let at = left + place(*x);
        writeln!(text, "<text x='{at}' y='{}' text-anchor='middle'>{x}</text>", bottom + 16).unwrap();
    }
    writeln!(text, "<text x='{}' y='{}' text-anchor='middle'>{across}</text>", left + PANEL / 2, bottom + 38).unwrap();
    for (number, curve) in curves.iter().enumerate() {
        let points: Vec<String> = curve
            .points
            .iter()
            .map(|(x, y)| format!("{},{}", left + place(*x), bottom - log_pixels(*y, PANEL)))
            .collect();
        let colour = COLOURS[number];
        writeln!(text, "<polyline points='{}' fill='none' stroke='{colour}' stroke-width='2'/>", points.join(" "))
            .unwrap();
        let line = top + 14 + u32::try_from(number).unwrap() * 16;
        writeln!(text, "<text x='{}' y='{line}' text-anchor='end' fill='{colour}'>{}</text>", left + PANEL, curve.name)
            .unwrap();
    }
    text + "</g>\n"
}

fn picture(jumps: &[Curve], drifts: &[Curve]) -> String {
    let (percent, speed) = (|x: u32| (x - 25) * PANEL / 75, |x: u32| log_pixels(x, PANEL));
    let jump = ["median calls until the alarm", "per cent bad, from one call to the next"];
    let drift = ["median calls beyond the null until the alarm", "per mille more with each hundred calls"];
    let panels = [
        panel(55, jump, &[30, 40, 50, 60, 70, 80, 90, 100], jumps, percent),
        panel(435, drift, &[10, 100, 1_000], drifts, speed),
    ];
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 760 400' role='img'>\n<title>How soon conduct is found \
         that is no longer honest</title>\n<rect width='760' height='400' fill='white'/>\n{}</svg>\n",
        panels.concat()
    )
}

#[test]
fn what_drifts_is_found_and_the_picture_of_it_is_true() {
    let (jumps, drifts) = (jumps(), drifts());
    println!("{}", table("calls until the alarm, median; null 25 %", "per cent bad from then on", &jumps));
    println!("{}", table("the same from where the null ends", "per mille more each 100 calls", &drifts));
    for curve in jumps.iter().chain(&drifts) {
        // Not each single step: a median has its own noise.
        let (first, last) = (curve.points[0].1, curve.points[curve.points.len() - 1].1);
        assert!(last < 50 && last < first / 10, "{}: {:?}", curve.name, curve.points);
    }
    let (drawn, path) = (picture(&jumps, &drifts), concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/conduct.svg"));
    if std::env::var_os("EPHOR_KEEP_PICTURES").is_some() {
        std::fs::write(path, &drawn).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == drawn, "docs/conduct.svg: EPHOR_KEEP_PICTURES=1 keeps a new one");
}

#[test]
fn honest_conduct_alarms_at_most_once_in_a_thousand_histories() {
    for p0 in [50, 100, 250, 500, 800] {
        // At the very edge of the null, and wandering below it by what came before: looked at after every call.
        let edge = |_: u32, _: bool| u64::from(p0) * 1_000;
        let wandering =
            |call: u32, last_was_bad: bool| if last_was_bad || call % 97 < 30 { u64::from(p0) * 1_000 } else { 0 };
        let alarms = |seed: u64, rate: &dyn Fn(u32, bool) -> u64| {
            let mut dice = Dice(seed);
            let mut life = || {
                let (mut evidence, mut bad) = (Evidence::under(p0), false);
                for call in 0..1_000 {
                    bad = dice.is_bad(rate(call, bad));
                    evidence = evidence.after(bad);
                }
                evidence.alarms()
            };
            (0..10_000).filter(|_| life()).count()
        };
        let (edge, wandering) = (alarms(1, &edge), alarms(2, &wandering));
        println!(
            "null {p0:>3} per mille: {edge} and {wandering} false alarms in 10,000 histories of 1,000 calls (at most 10)"
        );
        assert!(edge <= 10 && wandering <= 10, "{p0}: {edge} {wandering}");
    }
}
