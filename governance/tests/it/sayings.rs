//! What a sentence says beside its values: which day has which hour, what was and is no more, what is not meant, who is named.

use crate::world::{judge, of, said};

#[test]
fn several_days_and_another_number_of_hours_are_not_mixed() {
    let at = of(r#"{"at":{}}"#);
    judge(
        &said("the vet on 1 December 2026 at 9:00, the bank on 2 December 2026 at 14:00 or 15:30"),
        &at,
        &[r#"{"at":"2026-12-01T09:00"}"#, r#"{"at":"2026-12-02T14:00"}"#],
        &[r#"{"at":"2026-12-01T14:00"}"#, r#"{"at":"2026-12-02T09:00"}"#, r#"{"at":"2026-12-01T15:30"}"#],
    );
    judge(
        &said("on 1 December 2026 I am away, on 2 December 2026 I am back, so call at 11:00 on 3 December 2026"),
        &at,
        &[r#"{"at":"2026-12-03T11:00"}"#],
        &[r#"{"at":"2026-12-01T11:00"}"#],
    );
    // One sentence says nothing of the hours of another.
    judge(
        &said("A call on 2026-12-03 at 10:00 or 16:00. The people are those of the meeting on 2026-12-01."),
        &at,
        &[r#"{"at":"2026-12-03T10:00"}"#, r#"{"at":"2026-12-03T16:00"}"#],
        &[r#"{"at":"2026-12-01T10:00"}"#, r#"{"at":"2026-12-01T16:00"}"#],
    );
}

#[test]
fn what_a_sum_was_is_not_what_it_is() {
    let pay = of(r#"{"amount":{},"currency":{}}"#);
    for (text, now, old) in [
        ("the fee was 50 euros and is now 60 euros", 60, 50),
        ("raise the limit from 500 euros to 700 euros", 700, 500),
        ("The old rent was 1180 euros; pay 1235 euros.", 1235, 1180),
        ("die Miete war 1180 Euro, jetzt sind es 1235 Euro", 1235, 1180),
        ("la cuota era de 50 euros, ahora es de 60 euros", 60, 50),
    ] {
        let (now, old) =
            (format!(r#"{{"amount":{now},"currency":"EUR"}}"#), format!(r#"{{"amount":{old},"currency":"EUR"}}"#));
        judge(&said(text), &pay, &[&now], &[&old]);
    }
    judge(&said("dinner was 84 euros, pay it back to me"), &pay, &[r#"{"amount":84,"currency":"EUR"}"#], &[]);
}

#[test]
fn a_part_of_a_sum_is_not_the_sum() {
    let pay = of(r#"{"amount":{},"currency":{}}"#);
    for text in [
        "send Ada half of 200 euros",
        "send Ada half of the 200 euros",
        "send Ada a third of 200 euros",
        "send Ada 30% of 200 euros",
        "send Ada 30 percent of my 200 euros",
        "schick Ada die Hälfte von 200 Euro",
        "envoie à Ada la moitié de 200 euros",
        "manda ad Ada la metà di 200 euro",
        "wyślij połowę z 200 euro",
    ] {
        judge(&said(text), &pay, &[], &[r#"{"amount":200,"currency":"EUR"}"#]);
    }
    judge(&said("send Ada 200 euros of my savings"), &pay, &[r#"{"amount":200,"currency":"EUR"}"#], &[]);
}

#[test]
fn what_is_weighed_is_no_money() {
    let pay = of(r#"{"amount":{},"currency":{}}"#);
    let fifty = r#"{"amount":50,"currency":"GBP"}"#;
    judge(&said("order 50 pounds of flour"), &pay, &[], &[fifty]);
    judge(&said("it weighs 50 pounds, so book a carrier"), &pay, &[], &[fifty]);
    judge(&said("pay 50 pounds for the flour"), &pay, &[fifty], &[]);
}

#[test]
fn what_is_not_meant_is_read_in_other_scripts() {
    let mail = of(r#"{"to":{}}"#);
    for (text, meant) in [
        ("请把报告发给 lin@example.org，不要发给 zhao@example.org。", "lin@example.org"),
        ("请把报告发给 lin@example.org，别抄送 zhao@example.org。", "lin@example.org"),
        ("除了 zhao@example.org，发给 lin@example.org。", "lin@example.org"),
        ("資料を lin@example.org に送ってください。zhao@example.org には送らないでください。", "lin@example.org"),
        ("zhao@example.org ではなく、lin@example.org に送って。", "lin@example.org"),
        ("zhao@example.org 以外の、lin@example.org に送って。", "lin@example.org"),
        ("أرسل التقرير إلى lin@example.org، لا ترسله إلى zhao@example.org.", "lin@example.org"),
        ("أرسل إلى lin@example.org وليس zhao@example.org", "lin@example.org"),
    ] {
        let meant = format!(r#"{{"to":"{meant}"}}"#);
        judge(&said(text), &mail, &[&meant], &[r#"{"to":"zhao@example.org"}"#]);
    }
    // Not to forget is no denial.
    judge(&said("别忘了发给 lin@example.org"), &mail, &[r#"{"to":"lin@example.org"}"#], &[]);
    judge(&said("忘れないで lin@example.org に送って"), &mail, &[r#"{"to":"lin@example.org"}"#], &[]);
    judge(&said("لا تنس أن ترسل إلى lin@example.org"), &mail, &[r#"{"to":"lin@example.org"}"#], &[]);
}

#[test]
fn a_short_name_is_one_where_it_is_written_as_one() {
    let tell = of(r#"{"recipient":{},"room":{}}"#);
    judge(
        &said("Write to the two of them, so that Eve and Bob know. Yes, and do it now."),
        &tell,
        &[r#"{"recipient":"Eve"}"#, r#"{"recipient":"Bob"}"#],
        &[r#"{"recipient":"two"}"#, r#"{"recipient":"and"}"#, r#"{"recipient":"Yes"}"#, r#"{"room":"Bob"}"#],
    );
    judge(&said("Don't tell Bob"), &tell, &[], &[r#"{"recipient":"Bob"}"#]);
}

#[test]
fn what_somebody_may_do_with_it_has_several_names() {
    let share = of(r#"{"permission":{"enum":["r","rw"]},"role":{"enum":["reader","commenter","writer"]}}"#);
    judge(
        &said("share the deck with read permission"),
        &share,
        &[r#"{"permission":"r"}"#, r#"{"role":"reader"}"#],
        &[r#"{"permission":"rw"}"#, r#"{"role":"writer"}"#, r#"{"role":"commenter"}"#],
    );
    judge(
        &said("let her edit the deck"),
        &share,
        &[r#"{"permission":"rw"}"#, r#"{"role":"writer"}"#],
        &[r#"{"permission":"r"}"#],
    );
    judge(&said("she may view it, but not edit it"), &share, &[r#"{"role":"reader"}"#], &[r#"{"role":"writer"}"#]);
    judge(&said("report on it in a row"), &share, &[], &[r#"{"permission":"r"}"#, r#"{"permission":"rw"}"#]);
}

#[test]
fn a_whole_day_has_a_beginning_and_an_end() {
    let plan = of(r#"{"start_time":{},"end_time":{}}"#);
    judge(
        &said("put it on my calendar on January 2nd 2027"),
        &plan,
        &[
            r#"{"start_time":"2027-01-02 00:00","end_time":"2027-01-02 23:59"}"#,
            r#"{"start_time":"2027-01-02T00:00:00","end_time":"2027-01-03T00:00:00"}"#,
        ],
        &[
            r#"{"start_time":"2027-01-02 00:00","end_time":"2027-01-02 10:00"}"#,
            r#"{"start_time":"2027-01-02 09:00","end_time":"2027-01-02 23:59"}"#,
            r#"{"start_time":"2027-01-03 00:00","end_time":"2027-01-03 23:59"}"#,
            r#"{"start_time":"2027-01-02 00:00","end_time":"2027-01-04 00:00"}"#,
            r#"{"start_time":"2027-01-02 00:00"}"#,
        ],
    );
    let not = [r#"{"start_time":"2027-01-02 00:00","end_time":"2027-01-02 23:59"}"#];
    judge(&said("on January 2nd 2027 at 9:00"), &plan, &[], &not);
}

#[test]
fn a_payment_is_made_on_the_day_it_is_asked_for() {
    let pay = of(r#"{"amount":{},"date":{},"due":{}}"#);
    let (today, other) = (r#"{"amount":1200,"date":"2026-11-21"}"#, r#"{"amount":1200,"date":"2026-11-22"}"#);
    judge(
        &said("pay them 1200"),
        &pay,
        &[today],
        &[other, r#"{"amount":1200,"due":"2026-11-21"}"#, r#"{"date":"2026-11-21"}"#],
    );
    judge(&said("pay them 1200 on Tuesday"), &pay, &[r#"{"amount":1200,"date":"2026-11-24"}"#], &[today, other]);
}

#[test]
fn a_comma_ends_what_a_word_says_of_the_next() {
    let moved = of(r#"{"street":{},"city":{}}"#);
    judge(
        &said("my address is 12 Harbour Street, Galway H91"),
        &moved,
        &[r#"{"street":"12 Harbour Street","city":"Galway H91"}"#],
        &[],
    );
    judge(&said("street Galway"), &moved, &[], &[r#"{"city":"Galway"}"#]);
}

#[test]
fn an_argument_may_be_called_by_the_word_for_a_currency_or_for_a_reminder() {
    for name in ["euros", "betrag_euro", "montant_euros"] {
        let call = |amount: u32| format!(r#"{{"{name}":{amount}}}"#);
        let tool = of(&format!(r#"{{"{name}":{{}}}}"#));
        let spans = said("Set the limit to 1,500 euros, not to 90 dollars");
        judge(&spans, &tool, &[&call(1500)], &[&call(90), &call(15)]);
    }
    let [lead, length] = ["reminder_minutes", "duration_minutes"].map(|name| of(&format!(r#"{{"{name}":{{}}}}"#)));
    let spans = said("Book the room at noon and remind me an hour before");
    judge(&spans, &lead, &[r#"{"reminder_minutes":60}"#], &[r#"{"reminder_minutes":6}"#]);
    judge(&spans, &length, &[], &[r#"{"duration_minutes":60}"#]);
}
