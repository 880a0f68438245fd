//! The forms in which a call writes what a person said, and what must not pass in them. Attacks beside each.

use ephor_base::{Confidentiality, Flow, Integrity, Label, Registration, Source};
use ephor_governance::{Carried, SpanTable, TurnTime};

use crate::world::{is_trusted, judge, of, tool};

/// A Tuesday afternoon, two hours ahead of UTC.
fn said(text: &str) -> SpanTable {
    let mut spans = SpanTable::default();
    spans.begin_turn(TurnTime::parse("2027-05-11T13:04:00+02:00"));
    spans.enter(Label::new(Source::User, Integrity::Trusted, Confidentiality::Public), text);
    spans
}

fn list(spans: &mut SpanTable, entry: &str, text: &str) {
    let flow = Flow { trusted_for: vec![entry.to_owned()], ..Flow::looks() };
    let label = Label::new(Source::Tool, Integrity::Untrusted, Confidentiality::Public);
    let source = Registration { name: "t.list".parse().unwrap(), flow, ..tool() };
    spans.enter_result(label, text, &source, Carried::default());
}

const PAYMENT: &str = r#"{"sum":{"type":"object","properties":{"currency":{},"units":{"description":"in cents or pence"}}},
    "percent":{},"each":{},"amount":{}}"#;

#[test]
fn an_amount_keeps_its_currency_and_its_unit() {
    judge(
        &said("my rent goes up to £1,235"),
        &of(PAYMENT),
        &[r#"{"sum":{"currency":"GBP","units":123500}}"#],
        &[
            r#"{"sum":{"currency":"GBP","units":1235}}"#,
            r#"{"sum":{"currency":"EUR","units":123500}}"#,
            r#"{"sum":{"currency":"GBP","units":12350000}}"#,
        ],
    );
    judge(
        &said("split 47.20 euros plus 10% tip"),
        &of(PAYMENT),
        &[r#"{"amount":"EUR 47.20","percent":10}"#],
        &[r#"{"percent":47}"#, r#"{"amount":"EUR 10"}"#, r#"{"amount":"GBP 47.20"}"#, r#"{"amount_each":"EUR 47.20"}"#],
    );
}

#[test]
fn numbers_may_be_written_out() {
    for (text, meant, not) in [
        ("move two hundred euros", "EUR 200", "EUR 2"),
        ("move two hundred euros", "EUR 200", "EUR 100"),
        ("mándale veinticinco euros con cincuenta", "EUR 25.50", "EUR 25"),
        ("überweise fünfundzwanzig Euro", "EUR 25", "EUR 20"),
        ("paga treinta y cinco euros", "EUR 35", "EUR 30"),
        ("one thousand two hundred and five dollars", "USD 1205", "USD 1200"),
    ] {
        let call = |amount: &str| format!("{{\"amount\":\"{amount}\"}}");
        judge(&said(text), &of(PAYMENT), &[&call(meant)], &[&call(not)]);
    }
}

#[test]
fn an_amount_goes_with_the_account_it_stands_by() {
    let batch = of(r#"{"payments":{"items":{"properties":{"iban":{},"cents":{},"currency":{}}}}}"#);
    let spans = said(
        "pay DE89 3704 0044 0532 0130 00 gets 1,450.00 euros, FR14 2004 1010 0505 0001 3M02 606 gets 780 euros, and \
         BE68 5390 0754 7034 gets 312.75 euros",
    );
    let row = |iban: &str, cents: u32| {
        format!("{{\"payments\":[{{\"iban\":\"{iban}\",\"cents\":{cents},\"currency\":\"EUR\"}}]}}")
    };
    let (de, fr, be) = ("DE89370400440532013000", "FR1420041010050500013M02606", "BE68539007547034");
    let meant = [row(de, 145_000), row(fr, 78_000), row(be, 31_275)];
    let not = [row(de, 78_000), row(fr, 145_000), row(fr, 31_275), row(be, 78_000), row(de, 1450)];
    judge(&spans, &batch, &meant.each_ref().map(String::as_str), &not.each_ref().map(String::as_str));
    let spans = said(
        "pay 1,450.00 euros to DE89 3704 0044 0532 0130 00, 780 euros to FR14 2004 1010 0505 0001 3M02 606 and 312.75 euros \
         to BE68 5390 0754 7034",
    );
    judge(&spans, &batch, &meant.each_ref().map(String::as_str), &not.each_ref().map(String::as_str));
}

#[test]
fn lengths_are_said_and_not_taken_from_elsewhere() {
    let meeting = of(r#"{"duration":{},"alarm":{},"span":{},"minutes":{}}"#);
    judge(
        &said("a call, quarter of an hour, reminder 5 mins before"),
        &meeting,
        &[r#"{"duration":"PT15M","alarm":"-PT5M"}"#, r#"{"minutes":15}"#],
        &[
            r#"{"minutes":5}"#,
            r#"{"duration":"PT5M"}"#,
            r#"{"alarm":"PT5M"}"#,
            r#"{"alarm":"-PT15M"}"#,
            r#"{"duration":"PT15H"}"#,
            r#"{"duration":"P15D"}"#,
        ],
    );
    judge(
        &said("mute it for 3 days at 5"),
        &meeting,
        &[r#"{"span":"P3D"}"#],
        &[r#"{"span":"P5D"}"#, r#"{"span":"P3M"}"#, r#"{"span":"PT3H"}"#],
    );
}

#[test]
fn a_rhythm_is_the_one_that_was_said() {
    let event = of(r#"{"rrule":{}}"#);
    judge(
        &said("every weekday at 9:15"),
        &event,
        &[r#"{"rrule":"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"}"#, r#"{"rrule":"FREQ=DAILY;BYDAY=FR,MO,TU,WE,TH"}"#],
        &[
            r#"{"rrule":"FREQ=DAILY"}"#,
            r#"{"rrule":"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA"}"#,
            r#"{"rrule":"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;INTERVAL=2"}"#,
            r#"{"rrule":"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL=20300101"}"#,
        ],
    );
    judge(&said("jeden Montag"), &event, &[r#"{"rrule":"FREQ=WEEKLY;BYDAY=MO"}"#], &[r#"{"rrule":"FREQ=MONTHLY"}"#]);
}

const EVENT: &str = r#"{"start":{"properties":{"dateTime":{}}},"end":{"properties":{"dateTime":{}}},"interval":{},
    "post_at":{"description":"unix time"},"until":{},"pickup_at":{}}"#;

#[test]
fn an_end_is_the_start_of_the_call_and_a_length_that_was_said() {
    let call = |start: &str, end: &str| {
        format!("{{\"start\":{{\"dateTime\":\"2027-05-13T{start}\"}},\"end\":{{\"dateTime\":\"2027-05-13T{end}\"}}}}")
    };
    let spans = said("am Donnerstag um halb elf vormittags, dauert eine Dreiviertelstunde");
    let not = [call("10:30", "11:30"), call("11:15", "12:00"), call("11:15", "10:30"), call("10:30", "10:15")];
    judge(&spans, &of(EVENT), &[&call("10:30", "11:15")], &not.each_ref().map(String::as_str));
    judge(
        &said("a room on Thursday from 2 to 3:30 in the afternoon"),
        &of(EVENT),
        &[
            r#"{"interval":"2027-05-13T14:00/2027-05-13T15:30"}"#,
            r#"{"interval":"2027-05-13T12:00Z/2027-05-13T13:30Z"}"#,
        ],
        &[
            r#"{"interval":"2027-05-13T02:00/2027-05-13T03:30"}"#,
            r#"{"interval":"2027-05-13T14:00/2027-05-14T15:30"}"#,
            r#"{"interval":"2027-05-13T14:00/PT8H"}"#,
        ],
    );
    judge(
        &said("a room for four nights from the 3rd of June"),
        &of(EVENT),
        &[r#"{"interval":"2027-06-03/P4D"}"#],
        &[r#"{"interval":"2027-06-03/P3D"}"#, r#"{"interval":"2027-06-04/P4D"}"#, r#"{"interval":"2027-06-03/P4M"}"#],
    );
}

#[test]
fn a_moment_is_the_same_in_whatever_form_and_no_other() {
    judge(
        &said("schedule it for tomorrow 8am"),
        &of(EVENT),
        // 2027-05-12T06:00:00Z.
        &[r#"{"post_at":1810101600}"#, r#"{"until":"2027-05-12T06:00:00Z"}"#, r#"{"until":"2027-05-12T08:00+02:00"}"#],
        &[
            r#"{"post_at":1810108800}"#,
            r#"{"post_at":1810101600000}"#,
            r#"{"until":"2027-05-12T08:00:00Z"}"#,
            r#"{"until":"2027-05-12T08:00+03:00"}"#,
        ],
    );
    judge(
        &said("do not disturb til 5"),
        &of(EVENT),
        &[r#"{"until":"2027-05-11T17:00"}"#],
        &[r#"{"until":"2027-05-12T05:00"}"#, r#"{"until":"2027-05-11T05:00"}"#],
    );
}

#[test]
fn what_is_reckoned_from_a_time_is_for_what_the_sentence_names() {
    judge(
        &said("We land tomorrow at 21:50. Pick us up 45 minutes after landing."),
        &of(EVENT),
        &[r#"{"pickup_at":"2027-05-12T22:35"}"#, r#"{"until":"2027-05-12T21:50"}"#],
        &[r#"{"pickup_at":"2027-05-12T21:50"}"#, r#"{"until":"2027-05-12T22:35"}"#],
    );
}

#[test]
fn hours_go_with_days_in_the_order_of_the_request() {
    judge(
        &said("Un coche del 12 al 15 de junio. Lo recojo a las 10:00 y lo devuelvo a las 18:00."),
        &of(EVENT),
        &[r#"{"interval":"2027-06-12T10:00/2027-06-15T18:00"}"#],
        &[r#"{"interval":"2027-06-12T18:00/2027-06-15T10:00"}"#],
    );
}

#[test]
fn a_row_of_a_list_is_the_one_that_was_picked() {
    let rows = "SK4T9Q Oslo 2027-06-11 EUR 90\nWF2L7B Bergen 2027-06-12 EUR 80\nTP6R2N Lisbon 2027-06-13 EUR 70";
    let call = |reference: &str| format!("{{\"booking_ref\":\"{reference}\"}}");
    for (text, picked) in [
        ("cancel the Oslo trip, NOT the bergen one", "SK4T9Q"),
        ("cancel the second one", "WF2L7B"),
        ("2番目をお願いします", "WF2L7B"),
        ("cancel the last one", "TP6R2N"),
        ("cancel the one from Saturday", "WF2L7B"),
        ("cancel the one for 70 euros", "TP6R2N"),
        ("take the cheapest", "TP6R2N"),
    ] {
        let mut spans = said(text);
        list(&mut spans, "booking_ref", rows);
        let all = ["SK4T9Q", "WF2L7B", "TP6R2N"];
        let not: Vec<String> = all.iter().filter(|own| **own != picked).map(|own| call(own)).collect();
        let not: Vec<&str> = not.iter().map(String::as_str).collect();
        judge(&spans, &of(r#"{"booking_ref":{}}"#), &[&call(picked)], &not);
        // Nothing but the name of a record is one, and one is not two.
        for other in ["Oslo", "2027-06-11", "SK4T9Q,WF2L7B", "09:30"] {
            assert!(!is_trusted(&spans, &of(r#"{"booking_ref":{}}"#), &call(other)), "{text}: {other}");
        }
    }
}

#[test]
fn an_excluded_row_is_not_meant_where_any_other_will_do() {
    let mut spans = said("Any room will do except the Aquarium, which has no daylight.");
    list(&mut spans, "room", "Aquarium, 8 seats\nB2.14 Lighthouse, 6 seats");
    judge(&spans, &of(r#"{"room":{}}"#), &[r#"{"room":"B2.14 Lighthouse"}"#], &[r#"{"room":"Aquarium"}"#]);
}

#[test]
fn yes_and_the_values_of_a_list_in_the_schema_have_to_be_said() {
    let channel =
        of(r#"{"private":{},"broadcast":{},"direction":{"enum":["in","out"]},"leg":{"enum":["outward","return"]}}"#);
    judge(
        &said("make a private channel and put 20 euros into it"),
        &channel,
        &[r#"{"private":true}"#, r#"{"direction":"in"}"#],
        &[r#"{"private":false}"#, r#"{"broadcast":true}"#, r#"{"direction":"out"}"#],
    );
    judge(&said("a channel, not private"), &channel, &[], &[r#"{"private":true}"#]);
    judge(
        &said("push our return flight to Thursday and leave the outward flight as it is"),
        &channel,
        &[r#"{"leg":"return"}"#],
        &[r#"{"leg":"outward"}"#],
    );
}

#[test]
fn addresses_names_and_links_are_whole() {
    let mail = of(
        r#"{"to":{"items":{"properties":{"name":{},"address":{}}}},"cc":{"items":{}},"message":{"description":"pNNN of the link"},
        "flight":{}}"#,
    );
    judge(
        &said(
            "send it to jan.nowak@tartak.example, it is https://chat.example/archives/C04PP1/p1807485, flight LX 318",
        ),
        &mail,
        &[
            r#"{"to":[{"name":"Jan Nowak","address":"jan.nowak@tartak.example"}]}"#,
            r#"{"cc":["mailto:jan.nowak@tartak.example"]}"#,
            r#"{"message":"p1807485"}"#,
            r#"{"flight":"LX318"}"#,
        ],
        &[
            r#"{"to":[{"name":"Nowak","address":"jan.nowak@tartak.example"}]}"#,
            r#"{"to":[{"name":"Jan Tartak","address":"jan.nowak@tartak.example"}]}"#,
            r#"{"to":[{"name":"Jan Nowak","address":"jan@tartak.example"}]}"#,
            r#"{"cc":["mailto:jan.nowak@tartak.example?bcc=mallory@evil.example"]}"#,
            r#"{"message":"C04PP1"}"#,
            r#"{"message":"1807485"}"#,
            r#"{"flight":"LX31"}"#,
        ],
    );
}

#[test]
fn what_is_said_of_one_row_is_not_for_another() {
    let seats = of(r#"{"seats":{"items":{"properties":{"passenger":{},"seat":{}}}}}"#);
    let mut spans = said("put Nadia in 14C and Leo in 14D, they gave us 22B and 31F");
    list(&mut spans, "seats", "Nadia Brook 22B, Leo Brook 31F");
    let row =
        |passenger: &str, seat: &str| format!("{{\"seats\":[{{\"passenger\":\"{passenger}\",\"seat\":\"{seat}\"}}]}}");
    let meant = [row("Nadia Brook", "14C"), row("Leo Brook", "14D")];
    let not = [row("Nadia Brook", "14D"), row("Leo Brook", "14C"), row("Nadia Brook", "31F"), row("Leo Brook", "31F")];
    judge(&spans, &seats, &meant.each_ref().map(String::as_str), &not.each_ref().map(String::as_str));
}

#[test]
fn a_piece_of_what_is_quoted_is_not_what_was_dictated() {
    let status = of(r#"{"text":{},"stream":{}}"#);
    judge(
        &said("mute release-noise and set my status to 'heads down'"),
        &status,
        &[r#"{"text":"heads down"}"#, r#"{"stream":"release-noise"}"#],
        &[r#"{"text":"heads"}"#, r#"{"text":"release-noise"}"#, r#"{"stream":"heads down"}"#],
    );
    judge(
        &said("mit diesem Text: « Bin im Urlaub. Ruft nicht an: schreibt Claire. »"),
        &status,
        &[r#"{"text":"Bin im Urlaub. Ruft nicht an: schreibt Claire."}"#],
        &[r#"{"text":"Bin im Urlaub."}"#, r#"{"text":"schreibt Claire."}"#],
    );
}

#[test]
fn a_unit_may_stand_beside_its_number_or_in_the_schema() {
    let hold = of(
        r#"{"tickets":{"items":{"properties":{"kind":{"enum":["adult","child"]},"count":{}}}},"duration":{"description":"minutes"},
        "price":{"properties":{"wert":{},"waehrung":{}}},"slot":{},"waiting_room":{}}"#,
    );
    judge(
        &said("two adults and one child, half an hour between 14:00 and 16:00 with a waiting room, for 75 euros"),
        &hold,
        &[
            r#"{"tickets":[{"kind":"adult","count":2},{"kind":"child","count":1}]}"#,
            r#"{"duration":30}"#,
            r#"{"price":{"wert":"75.00","waehrung":"EUR"}}"#,
            r#"{"slot":"14:00-16:00"}"#,
            r#"{"waiting_room":true}"#,
        ],
        &[
            r#"{"tickets":[{"kind":"child","count":2}]}"#,
            r#"{"tickets":[{"kind":"adult","count":75}]}"#,
            r#"{"duration":2}"#,
            r#"{"price":{"wert":"30.00","waehrung":"EUR"}}"#,
            r#"{"price":{"wert":"75.00","waehrung":"GBP"}}"#,
            r#"{"slot":"14:00-18:00"}"#,
        ],
    );
}

#[test]
fn what_is_denied_is_not_said() {
    let act = of(r#"{"amount":{},"start":{},"private":{"type":"boolean"},"to":{}}"#);
    for (text, meant, not) in [
        ("Pay Anna 30 EUR, not 50 EUR.", r#"{"amount":"EUR 30"}"#, r#"{"amount":"EUR 50"}"#),
        ("Move it to Tuesday 3pm, not Monday.", r#"{"start":"2027-05-18T15:00"}"#, r#"{"start":"2027-05-17T15:00"}"#),
        ("Don't book the 9am, book the 11am.", r#"{"start":"2027-05-12T11:00"}"#, r#"{"start":"2027-05-12T09:00"}"#),
        ("To ana@x.example, never to bo@x.example.", r#"{"to":"ana@x.example"}"#, r#"{"to":"bo@x.example"}"#),
        ("An ana@x.example, keine Kopie an bo@x.example", r#"{"to":"ana@x.example"}"#, r#"{"to":"bo@x.example"}"#),
        ("To ana@x.example, and don't make it private", r#"{"to":"ana@x.example"}"#, r#"{"private":true}"#),
        ("Don't forget to pay 30 EUR.", r#"{"amount":"EUR 30"}"#, r#"{"amount":"EUR 3"}"#),
    ] {
        let spans = said(text);
        if !text.contains("11am") {
            judge(&spans, &act, &[meant], &[]);
        }
        judge(&spans, &act, &[], &[not]);
    }
}

#[test]
fn a_letter_that_only_folds_to_another_is_another() {
    judge(
        &said("Write to anna@lind.example and to strasse@lind.example, Straße 5"),
        &of(r#"{"to":{},"place":{}}"#),
        &[r#"{"to":"Anna@Lind.example"}"#, r#"{"place":"Straße 5"}"#],
        &[r#"{"to":"anna@lınd.example"}"#, r#"{"to":"straße@lind.example"}"#, r#"{"to":"ſtrasse@lind.example"}"#],
    );
}

#[test]
fn an_amount_as_a_text_keeps_its_currency_too() {
    let pay = of(r#"{"amount":{},"currency":{},"amount_eur":{},"units":{"description":"in pence"},
        "total":{"properties":{"value":{}}}}"#);
    judge(
        &said("My accounts are in EUR and in USD. Pay Bob 50 USD and Ann 20 dollars."),
        &pay,
        &[r#"{"amount":"50","currency":"USD"}"#, r#"{"amount":50,"currency":"dollars"}"#, r#"{"units":"5000"}"#],
        &[
            r#"{"amount":"50","currency":"EUR"}"#,
            r#"{"amount":"50.00","currency":"EUR"}"#,
            r#"{"amount_eur":"50"}"#,
            r#"{"units":"50"}"#,
            r#"{"total":{"value":50},"currency":"EUR"}"#,
        ],
    );
    judge(
        &said("Pay Bob 50 euros and Ann 20 dollars."),
        &pay,
        &[r#"{"amount":20,"currency":"dollars"}"#],
        &[r#"{"amount":50,"currency":"dollars"}"#, r#"{"amount":20,"currency":"euros"}"#],
    );
}

#[test]
fn an_amount_goes_with_whom_it_is_for() {
    let pay = of(r#"{"to":{},"payee":{},"amount":{},
        "payments":{"items":{"properties":{"payee":{},"amount":{},"currency":{}}}}}"#);
    judge(
        &said("Send 500 EUR to bob@x.example and 20 EUR to anna@x.example."),
        &pay,
        &[r#"{"to":"bob@x.example","amount":"EUR 500"}"#, r#"{"to":"anna@x.example","amount":"EUR 20"}"#],
        &[r#"{"to":"anna@x.example","amount":"EUR 500"}"#, r#"{"to":"bob@x.example","amount":"EUR 20"}"#],
    );
    judge(
        &said("Pay Anna 50 euros and Bobby 500 euros."),
        &pay,
        &[r#"{"payee":"Bobby","amount":"EUR 500"}"#, r#"{"payments":[{"payee":"Anna","amount":50,"currency":"EUR"}]}"#],
        &[
            r#"{"payee":"Anna","amount":"EUR 500"}"#,
            r#"{"payee":"Bobby","amount":50}"#,
            r#"{"payments":[{"payee":"Anna","amount":500,"currency":"EUR"}]}"#,
        ],
    );
}

#[test]
fn a_number_is_not_a_piece_of_a_greater_one() {
    for (text, not) in [
        ("Pay 5 thousand euros", "EUR 1000"),
        ("Pay one million two hundred euros", "EUR 200"),
        ("Pay €1.5 million", "EUR 1.5"),
        ("Vire 1 200 euros", "EUR 200"),
        ("Pay € 1 200", "EUR 1"),
        ("Przelej 12 500,00 zł", "PLN 500"),
        ("Überweise 1.200 Euro", "EUR 1.2"),
    ] {
        judge(&said(text), &of(PAYMENT), &[], &[&format!("{{\"amount\":\"{not}\"}}")]);
    }
    judge(&said("Vire 1 200 euros"), &of(PAYMENT), &[r#"{"amount":"EUR 1200"}"#], &[]);
}

#[test]
fn an_hour_is_the_one_that_its_words_make_it() {
    for (text, meant, not) in [
        ("Call tomorrow at 3 p.m. please", "12T15:00", "12T03:00"),
        ("Call tomorrow at 3 o'clock in the afternoon", "12T15:00", "12T03:00"),
        ("Call tomorrow at 8 at night", "12T20:00", "12T08:00"),
        ("Call tomorrow at 10 past 3", "", "12T10:00"),
        ("Call tomorrow at 20 minutes to 5", "", "12T20:00"),
        ("Anruf morgen um 10 nach 3", "", "12T10:00"),
        ("Call tomorrow at 3pm UTC", "", "12T15:00:00+02:00"),
        ("Call tomorrow at 15:00 London time", "", "12T15:00:00+02:00"),
        ("Book it for 2027-05-12T15:00:00Z", "12T17:00:00+02:00", "12T15:00:00+02:00"),
        ("Thursday the 20th at 3pm", "20T15:00", "13T15:00"),
        ("Thursday, 20 May at 3pm", "20T15:00", "13T15:00"),
        ("Thursday, May 20 at 3pm", "20T15:00", "13T15:00"),
        ("next week on Friday at 3pm", "21T15:00", "14T15:00"),
        ("a week on Friday at 3pm", "", "14T15:00"),
        ("Friday week at 3pm", "", "14T15:00"),
        ("two days after Friday at 3pm", "", "14T15:00"),
        ("two weeks from tomorrow at 3pm", "", "12T15:00"),
        ("the Friday after next at 3pm", "", "14T15:00"),
    ] {
        let call = |when: &str| format!("{{\"until\":\"2027-05-{when}\"}}");
        assert!(!is_trusted(&said(text), &of(EVENT), &call(not)), "{text}: {not}");
        assert!(meant.is_empty() || is_trusted(&said(text), &of(EVENT), &call(meant)), "{text}: {meant}");
    }
}

#[test]
fn the_day_on_which_a_stay_ends_is_no_beginning() {
    judge(
        &said("a room for four nights from the 3rd of June"),
        &of(r#"{"checkin":{},"check_in":{},"checkout":{},"nights":{},"interval":{},"start":{}}"#),
        &[r#"{"checkin":"2027-06-03","checkout":"2027-06-07"}"#],
        &[
            r#"{"checkin":"2027-06-07","nights":4}"#,
            r#"{"check_in":"2027-06-07"}"#,
            r#"{"start":"2027-06-07T10:00"}"#,
            r#"{"interval":"2027-06-07/P4D"}"#,
        ],
    );
}

#[test]
fn a_short_value_of_a_list_is_no_beginning_of_another_word() {
    let act = of(r#"{"scope":{"enum":["single","all"]},"copy":{"enum":["no","yes"]},"mode":{"enum":["on","off"]},
        "access":{"enum":["read","none"]}}"#);
    judge(
        &said("Do it now, allow what they offer once it is ready"),
        &act,
        &[],
        &[r#"{"scope":"all"}"#, r#"{"copy":"no"}"#, r#"{"mode":"off"}"#, r#"{"mode":"on"}"#, r#"{"access":"read"}"#],
    );
}

#[test]
fn a_place_in_a_list_counts_its_records() {
    let rows = "SK4T9Q Oslo\nWF2L7B Bergen\nTP6R2N Lisbon";
    let headed = format!("3 bookings found:\n{rows}");
    let fields =
        "booking_ref: SK4T9Q\ncity: Oslo\n\nbooking_ref: WF2L7B\ncity: Bergen\n\nbooking_ref: TP6R2N\ncity: Lisbon\n\n";
    let priced = "SK4T9Q EUR 90\nWF2L7B EUR 80\nTP6R2N EUR 85\nTotal";
    for (text, rows, picked) in [
        ("cancel the second one", &*headed, "WF2L7B"),
        ("cancel the third one", fields, "TP6R2N"),
        ("cancel the last one", &*format!("{rows}\nTotal"), "TP6R2N"),
        ("Give me a second: cancel the Lisbon trip", rows, "TP6R2N"),
        // The first of something else.
        ("before the first meeting, cancel the Lisbon trip", rows, "TP6R2N"),
        ("cancel the fourth one", rows, ""),
        ("cancel the sixth one", rows, ""),
        ("book the cheapest one", priced, "WF2L7B"),
    ] {
        let mut spans = said(text);
        list(&mut spans, "booking_ref", rows);
        for own in ["SK4T9Q", "WF2L7B", "TP6R2N"] {
            let call = format!("{{\"booking_ref\":\"{own}\"}}");
            let trusted = is_trusted(&spans, &of(r#"{"booking_ref":{}}"#), &call);
            assert_eq!(trusted, own == picked, "{text}: {own}");
        }
    }
}

#[test]
fn a_rhythm_with_an_end_is_none_without() {
    let event = of(r#"{"rrule":{}}"#);
    for text in ["every Monday at 9 until June", "every Monday for 4 weeks", "every Tuesday, not every Monday"] {
        judge(&said(text), &event, &[], &[r#"{"rrule":"FREQ=WEEKLY;BYDAY=MO"}"#]);
    }
}

#[test]
fn what_is_to_be_off_is_not_on() {
    let settings = of(r#"{"notifications":{},"auto_renew":{}}"#);
    judge(
        &said("turn off notifications and disable auto renew"),
        &settings,
        &[],
        &[r#"{"notifications":true}"#, r#"{"auto_renew":true}"#],
    );
    judge(&said("turn on notifications"), &settings, &[r#"{"notifications":true}"#], &[r#"{"auto_renew":true}"#]);
}

#[test]
fn hundredths_that_a_schema_denies_are_none() {
    let pay = of(r#"{"amount":{"description":"in euros, not in cents"},"share":{"description":"in per cent"}}"#);
    judge(&said("Pay 50 EUR"), &pay, &[r#"{"amount":50}"#], &[r#"{"amount":5000}"#, r#"{"share":5000}"#]);
}

#[test]
fn a_link_is_not_a_piece_of_one() {
    judge(
        &said("see https://good.example/a,b and https://good.example/x;y=1, and (https://good.example/z)."),
        &of(r#"{"url":{}}"#),
        &[r#"{"url":"https://good.example/z"}"#],
        &[r#"{"url":"https://good.example/a"}"#, r#"{"url":"https://good.example/x"}"#],
    );
}

#[test]
fn a_long_list_is_not_one_where_any_row_will_do() {
    let rows: Vec<String> = (0..600).map(|at| format!("XX{at}A row{at}place")).collect();
    let mut spans = said("cancel the Oslo trip");
    list(&mut spans, "booking_ref", &format!("SK4T9Q Oslo\n{}", rows.join("\n")));
    judge(&spans, &of(r#"{"booking_ref":{}}"#), &[], &[r#"{"booking_ref":"XX7A"}"#]);
}

#[test]
fn a_long_text_is_read_once() {
    for text in [
        format!("de12 {}", "aaaa ".repeat(100_000)),
        "de12 aaaa aaaa ".repeat(33_000),
        "every monday monday ".repeat(33_000),
        "do ".repeat(100_000),
        "not ".repeat(100_000),
    ] {
        assert!(!is_trusted(&said(&text), &of(r#"{"to":{}}"#), r#"{"to":"DE12AAAA"}"#), "{}", text.len());
    }
}
