//! What a person types in another form than a call has it: parts of names, moved hours, counts, measures, bare sums.

use ephor_base::{Confidentiality, Integrity, Label, Source};
use ephor_governance::{Carried, SpanTable};

use crate::world::{judge, of, said, tool};

/// A table that a tool which is declared for `entry` has told `text`, after the person said `asked`.
fn told(asked: &str, entry: &str, text: &str) -> SpanTable {
    let mut spans = said(asked);
    let mut registration = tool();
    registration.name = "t.list".parse().unwrap();
    registration.flow.trusted_for = vec![entry.to_owned()];
    let label = Label::new(Source::Tool, Integrity::Trusted, Confidentiality::Public);
    spans.enter_result(label, text, &registration, Carried::default());
    spans
}

#[test]
fn a_name_in_two_parts_is_taken_apart_and_never_put_together_anew() {
    let merge = of(r#"{"owner":{},"repo":{},"pull_number":{}}"#);
    let texts = [
        "merge #42 in acme/router, but not the one in nord/site",
        "merge acme/router#42",
        "merge https://github.com/acme/router/pull/42 please",
    ];
    for text in texts {
        judge(
            &said(text),
            &merge,
            &[r#"{"owner":"acme","repo":"router","pull_number":42}"#],
            &[
                r#"{"owner":"router","repo":"acme","pull_number":42}"#,
                r#"{"owner":"acme","repo":"site","pull_number":42}"#,
                r#"{"owner":"nord","repo":"router","pull_number":42}"#,
                r#"{"owner":"nord","repo":"site","pull_number":42}"#,
                r#"{"owner":"acme","repo":"router","pull_number":24}"#,
            ],
        );
    }
    let project = of(r#"{"project":{},"merge_request_iid":{}}"#);
    judge(
        &said("approve https://gitlab.com/kestrel/billing/-/merge_requests/45"),
        &project,
        &[r#"{"project":"kestrel/billing","merge_request_iid":45}"#],
        &[r#"{"project":"kestrel/payroll","merge_request_iid":45}"#, r#"{"project":"billing/kestrel"}"#],
    );
}

#[test]
fn a_number_with_a_sign_is_that_of_a_thing_and_of_the_one_it_names() {
    let close = of(r#"{"issue_number":{},"amount":{}}"#);
    judge(
        &said("close issue #87, it is fixed by PR #91"),
        &close,
        &[r#"{"issue_number":87}"#],
        &[r#"{"issue_number":91}"#, r#"{"amount":87}"#],
    );
    judge(&said("close #87, and don't touch #88"), &close, &[r#"{"issue_number":87}"#], &[r#"{"issue_number":88}"#]);
    let merge = of(r#"{"merge_request_iid":{}}"#);
    judge(&said("approve !342"), &merge, &[r#"{"merge_request_iid":342}"#], &[r#"{"merge_request_iid":34}"#]);
}

#[test]
fn a_value_behind_its_key_needs_no_space() {
    let tell = of(r#"{"to":{}}"#);
    let list = r#"{"sender_id":20417,"name":"Beatriz Leal"}"#;
    judge(&told("tell Beatriz Leal", "to", list), &tell, &[r#"{"to":20417}"#], &[r#"{"to":20390}"#]);
}

#[test]
fn what_is_moved_has_its_hour_on_the_new_day() {
    let at = of(r#"{"start":{},"end":{}}"#);
    for text in [
        "move my 1:1 with Hanna on Wednesday to Friday, 11:00-11:30",
        "move my 1:1 from Wednesday to Friday, 11:00 to 11:30",
        "reschedule the call of Wednesday to Friday from 11 to 11:30 am",
        "verschieb den Termin vom Mittwoch auf Freitag, 11:00 bis 11:30",
        "déplace la réunion de mercredi à vendredi, 11:00 à 11:30",
        "the call on Wednesday has to move to Friday, 11:00-11:30",
    ] {
        judge(
            &said(text),
            &at,
            &[r#"{"start":"2026-11-27T11:00","end":"2026-11-27T11:30"}"#],
            &[
                r#"{"start":"2026-11-25T11:00","end":"2026-11-27T11:30"}"#,
                r#"{"start":"2026-11-25T11:00","end":"2026-11-25T11:30"}"#,
                r#"{"start":"2026-11-25T11:30"}"#,
            ],
        );
    }
    judge(
        &said("move my 4 pm to Friday at 11:00"),
        &at,
        &[r#"{"start":"2026-11-27T11:00"}"#],
        &[r#"{"start":"2026-11-27T16:00"}"#],
    );
    judge(
        &said("shift it from Wednesday at 9:00 to Friday at 11:00"),
        &at,
        &[r#"{"start":"2026-11-27T11:00"}"#],
        &[r#"{"start":"2026-11-25T11:00"}"#, r#"{"start":"2026-11-27T09:00"}"#, r#"{"start":"2026-11-25T09:00"}"#],
    );
    // Where nothing is moved, both days have both ends.
    let both = said("block Wednesday and Friday from 9:00 to 10:00");
    judge(
        &both,
        &at,
        &[
            r#"{"start":"2026-11-25T09:00","end":"2026-11-25T10:00"}"#,
            r#"{"start":"2026-11-27T09:00","end":"2026-11-27T10:00"}"#,
        ],
        &[r#"{"start":"2026-11-26T09:00"}"#],
    );
}

#[test]
fn an_hour_is_past_or_to_another() {
    let at = of(r#"{"time":{},"start":{},"end":{}}"#);
    judge(
        &said("on Friday at half past seven in the evening"),
        &at,
        &[r#"{"time":"19:30"}"#],
        &[r#"{"time":"07:30"}"#, r#"{"time":"18:30"}"#],
    );
    judge(&said("at a quarter to nine in the morning"), &at, &[r#"{"time":"08:45"}"#], &[r#"{"time":"09:45"}"#]);
    judge(&said("on Friday from ten to four"), &at, &[], &[r#"{"time":"15:50"}"#, r#"{"time":"03:50"}"#]);
    judge(
        &said("on Friday, 9 to 11:30"),
        &at,
        &[r#"{"start":"2026-11-27T09:00","end":"2026-11-27T11:30"}"#],
        &[r#"{"start":"2026-11-27T09:30"}"#],
    );
}

#[test]
fn a_day_of_a_rhythm_is_not_the_day_on_which_it_begins() {
    let call = of(r#"{"start":{},"recurrence":{}}"#);
    judge(
        &said("a weekly call on Thursdays at 16:00 starting 3 December 2026"),
        &call,
        &[r#"{"start":"2026-12-03T16:00","recurrence":"FREQ=WEEKLY;BYDAY=TH"}"#],
        &[
            r#"{"start":"2026-11-26T16:00"}"#,
            r#"{"recurrence":"FREQ=WEEKLY;BYDAY=TU"}"#,
            r#"{"recurrence":"FREQ=DAILY"}"#,
        ],
    );
}

#[test]
fn a_role_is_that_of_the_person_beside_it() {
    let share = of(r#"{"email":{},"role":{"enum":["viewer","commenter","editor"]}}"#);
    let lea = |role: &str| format!(r#"{{"email":"lea@a.example","role":"{role}"}}"#);
    let max = |role: &str| format!(r#"{{"email":"max@a.example","role":"{role}"}}"#);
    for text in [
        "share it with lea@a.example as commenter. (max@a.example already is editor)",
        "lea@a.example can comment; max@a.example may edit it",
        "comment access for Lea, and edit access for Max: lea@a.example, max@a.example",
        "Lea can comment and Max can edit. Lea is in the office until noon.",
    ] {
        judge(&said(text), &share, &[], &[&lea("editor"), &lea("viewer"), &max("viewer"), &max("commenter")]);
    }
    let spans = said("share it with lea@a.example as commenter. (max@a.example already is editor)");
    judge(&spans, &share, &[&lea("commenter"), &max("editor")], &[]);
    judge(
        &said("lea@a.example can comment; max@a.example may edit it"),
        &share,
        &[&lea("commenter"), &max("editor")],
        &[],
    );
    // Who may read and write may write.
    judge(&said("let lea@a.example read and write it"), &share, &[&lea("editor")], &[&lea("viewer")]);
}

#[test]
fn what_is_measured_goes_where_it_is_asked_for() {
    let book =
        of(r#"{"vehicle":{"type":"object","properties":{"plate":{},"length_m":{},"height_m":{}}},"length_cm":{}}"#);
    for text in [
        "plate is KI-RB 4471, she's 6.99 m long and 2.85 m high, and weighs 3.5 t",
        "plate KI-RB 4471, length 6.99 m, height 2.85 m",
    ] {
        judge(
            &said(text),
            &book,
            &[r#"{"vehicle":{"plate":"KI-RB 4471","length_m":6.99,"height_m":2.85}}"#],
            &[
                r#"{"vehicle":{"plate":"KI-RB 4471","length_m":2.85,"height_m":6.99}}"#,
                r#"{"vehicle":{"plate":"KI-RB 4471","length_m":3.5}}"#,
                r#"{"length_cm":6.99}"#,
            ],
        );
    }
    let plate = of(r#"{"vehicle":{"type":"object","properties":{"plate":{}}}}"#);
    judge(&said("plate is KI-RB 4471"), &plate, &[], &[r#"{"vehicle":{"plate":"4471"}}"#]);
    let parcel = of(r#"{"width_cm":{},"height_cm":{},"weight_kg":{}}"#);
    judge(
        &said("a box that is 60 cm wide, 40cm high and 12 kg"),
        &parcel,
        &[r#"{"width_cm":60,"height_cm":40,"weight_kg":12}"#],
        &[r#"{"width_cm":40}"#, r#"{"height_cm":60}"#, r#"{"weight_kg":60}"#],
    );
    // A million is no metre.
    let pay = of(r#"{"amount":{}}"#);
    judge(&said("pay 6.99 m"), &pay, &[], &[r#"{"amount":6.99}"#]);
}

#[test]
fn how_many_we_are_is_how_many_come() {
    let table = of(r#"{"party_size":{},"attendee_count":{}}"#);
    for text in ["we are 6 instead of 4", "we're six now, not four", "a party of 6 on Friday", "wir sind 6, nicht 4"] {
        judge(&said(text), &table, &[r#"{"party_size":6}"#], &[r#"{"party_size":4}"#]);
    }
    judge(&said("a room for eight people"), &table, &[r#"{"attendee_count":8}"#], &[r#"{"attendee_count":9}"#]);
    judge(
        &said("we are 6 minutes late, and one of us has a dog"),
        &table,
        &[],
        &[r#"{"party_size":6}"#, r#"{"party_size":1}"#],
    );
}

#[test]
fn a_sum_without_a_currency_is_the_only_one_that_is_said_as_one() {
    let pay = of(r#"{"recipient":{},"amount":{}}"#);
    judge(
        &said("approve the 470 for the trip, he asked me first"),
        &pay,
        &[r#"{"amount":470}"#],
        &[r#"{"amount":47}"#, r#"{"amount":1}"#],
    );
    judge(&said("send Anna 50"), &pay, &[r#"{"recipient":"Anna","amount":50}"#], &[r#"{"amount":5}"#]);
    judge(
        &said("a spending limit of 300 on the card ending in 4417"),
        &of(r#"{"limit":{}}"#),
        &[r#"{"limit":300}"#],
        &[r#"{"limit":4417}"#],
    );
    // Of two, of what is not meant, and of what counts something, none.
    judge(&said("send Anna 50 and pay 70 to Bert"), &pay, &[], &[r#"{"amount":50}"#, r#"{"amount":70}"#]);
    judge(&said("send 20 to Anna, not the 35 for the concert"), &pay, &[r#"{"amount":20}"#], &[r#"{"amount":35}"#]);
    judge(&said("send Anna the 12 photos from room 7 at 8"), &pay, &[], &[r#"{"amount":12}"#, r#"{"amount":7}"#]);
    judge(&said("pay Anna by 15, she is 18"), &pay, &[], &[r#"{"amount":15}"#, r#"{"amount":18}"#]);
    judge(&said("send Anna 50, the rest of the 90 euros"), &pay, &[], &[r#"{"amount":50}"#]);
}

#[test]
fn what_is_counted_need_not_be_known() {
    let buy = of(r#"{"quantity":{},"limit_price":{}}"#);
    judge(&said("buy 12 shares at no more than 118.50"), &buy, &[r#"{"quantity":12}"#], &[r#"{"quantity":118}"#]);
    judge(&said("3 boxes and 5 crates to room 7"), &buy, &[], &[r#"{"quantity":3}"#, r#"{"quantity":7}"#]);
}

#[test]
fn a_seat_may_stand_before_whose_it_is() {
    let seats = of(r#"{"seats":{"type":"array","items":{"type":"object","properties":{"name":{},"seat":{}}}}}"#);
    judge(
        &said("seat 14C for Nadia and 14D for Tom please"),
        &seats,
        &[r#"{"seats":[{"name":"Nadia","seat":"14C"},{"name":"Tom","seat":"14D"}]}"#],
        &[r#"{"seats":[{"name":"Nadia","seat":"14D"},{"name":"Tom","seat":"14C"}]}"#],
    );
}

#[test]
fn a_yes_may_be_called_by_a_short_word_or_by_what_a_thing_is() {
    let make = of(r#"{"is_private":{},"pin":{}}"#);
    judge(&said("create a private channel"), &make, &[r#"{"is_private":true}"#], &[r#"{"pin":true}"#]);
    judge(&said("create a channel that is not private"), &make, &[], &[r#"{"is_private":true}"#]);
    judge(&said("post the notice and pin it"), &make, &[r#"{"pin":true}"#], &[r#"{"is_private":true}"#]);
    judge(&said("post the notice and don't pin it"), &make, &[], &[r#"{"pin":true}"#]);
    judge(&said("tell them the pin of the door"), &make, &[], &[r#"{"pin":true}"#]);
}

#[test]
fn a_sign_is_no_part_of_the_name_of_a_channel_or_a_person() {
    let post = of(r#"{"channel":{},"user":{}}"#);
    judge(
        &said("mute #random and tell @jo.park, but not #general"),
        &post,
        &[r#"{"channel":"random"}"#, r#"{"user":"jo.park"}"#],
        &[r#"{"channel":"general"}"#, r#"{"channel":"jo.park"}"#, r#"{"user":"random"}"#, r#"{"channel":"rand"}"#],
    );
}

#[test]
fn a_no_is_said_of_what_is_off_or_left_out() {
    let send = of(r#"{"include_attachments":{},"read_receipts":{},"notifications":{}}"#);
    judge(
        &said("turn off the read receipts but keep notifications on, and send it without the attachments"),
        &send,
        &[r#"{"read_receipts":false,"include_attachments":false,"notifications":true}"#],
        &[r#"{"notifications":false}"#, r#"{"read_receipts":true}"#, r#"{"include_attachments":true}"#],
    );
    for text in ["send it with the attachments", "send the attachments to the office", "add the attachments now"] {
        judge(&said(text), &send, &[], &[r#"{"include_attachments":false}"#]);
    }
    judge(&said("send it"), &send, &[], &[r#"{"include_attachments":false}"#, r#"{"include_attachments":true}"#]);
}

#[test]
fn a_value_of_the_schema_may_have_several_words_or_figures() {
    let book =
        of(r#"{"cabin":{"enum":["economy","premium_economy","business"]},"priority":{"enum":["P0","P1","P2"]}}"#);
    judge(
        &said("premium economy, and the priority is P1"),
        &book,
        &[r#"{"cabin":"premium_economy","priority":"P1"}"#],
        &[r#"{"cabin":"economy"}"#, r#"{"cabin":"business"}"#, r#"{"priority":"P0"}"#],
    );
    judge(
        &said("economy, not premium economy"),
        &book,
        &[r#"{"cabin":"economy"}"#],
        &[r#"{"cabin":"premium_economy"}"#],
    );
    judge(&said("P1 for this one, P2 for that one"), &book, &[], &[r#"{"priority":"P0"}"#]);
}

#[test]
fn a_part_that_somebody_takes_is_their_own() {
    let add = of(r#"{"user":{},"role":{"enum":["member","moderator","admin"]}}"#);
    judge(
        &said("make Priya an admin and Luca a moderator of the book club"),
        &add,
        &[r#"{"user":"Priya","role":"admin"}"#, r#"{"user":"Luca","role":"moderator"}"#],
        &[
            r#"{"user":"Luca","role":"admin"}"#,
            r#"{"user":"Priya","role":"moderator"}"#,
            r#"{"user":"Luca","role":"member"}"#,
        ],
    );
}

#[test]
fn what_goes_somewhere_does_not_come_from_there() {
    let train = of(r#"{"from":{},"to":{}}"#);
    let flight = of(r#"{"origin":{},"destination":{}}"#);
    for text in ["from York to Whitby tomorrow", "to Whitby from York tomorrow"] {
        judge(
            &said(text),
            &train,
            &[r#"{"from":"York","to":"Whitby"}"#],
            &[r#"{"from":"Whitby"}"#, r#"{"to":"York"}"#],
        );
        judge(
            &said(text),
            &flight,
            &[r#"{"origin":"York","destination":"Whitby"}"#],
            &[r#"{"origin":"Whitby","destination":"York"}"#],
        );
    }
    judge(&said("answer the mail from Whitby"), &of(r#"{"to":{}}"#), &[r#"{"to":"Whitby"}"#], &[]);
}

#[test]
fn an_hour_in_a_quotation_is_not_the_hour_of_the_call() {
    let post = of(r#"{"text":{},"post_at":{}}"#);
    judge(
        &said("schedule \"Standup moves to 9:45\" for Monday at 8:00"),
        &post,
        &[r#"{"text":"Standup moves to 9:45","post_at":"2026-11-23T08:00"}"#],
        &[r#"{"post_at":"2026-11-23T09:45"}"#],
    );
}

#[test]
fn what_is_counted_may_have_a_word_before_its_name() {
    let book = of(r#"{"rooms":{},"guests":{},"start":{},"buy_currency":{},"below":{"description":"EUR"}}"#);
    judge(&said("one double room"), &book, &[r#"{"rooms":1}"#], &[r#"{"rooms":2}"#, r#"{"guests":1}"#]);
    judge(&said("5 star rooms"), &book, &[], &[r#"{"rooms":5}"#]);
    judge(&said("3 guests, room 7"), &book, &[r#"{"guests":3}"#], &[r#"{"rooms":3}"#]);
    judge(&said("into Swiss francs"), &book, &[r#"{"buy_currency":"CHF"}"#], &[r#"{"buy_currency":"EUR"}"#]);
    judge(&said("tell me when it drops under 500"), &book, &[r#"{"below":500}"#], &[r#"{"below":50}"#]);
    judge(
        &said("a call in ten minutes"),
        &book,
        &[r#"{"start":"2026-11-21T09:10"}"#],
        &[r#"{"start":"2026-11-21T10:00"}"#],
    );
    judge(
        &said("a call in half an hour for 20 minutes"),
        &book,
        &[r#"{"start":"2026-11-21T09:30"}"#],
        &[r#"{"start":"2026-11-21T09:20"}"#],
    );
    let block = of(r#"{"start":{},"end":{}}"#);
    judge(
        &said("block 2-4pm on Monday"),
        &block,
        &[r#"{"start":"2026-11-23T14:00","end":"2026-11-23T16:00"}"#],
        &[r#"{"start":"2026-11-23T02:00"}"#, r#"{"end":"2026-11-23T04:00"}"#],
    );
}

#[test]
fn what_is_brought_forward_goes_to_an_earlier_day() {
    let at = of(r#"{"start":{},"until":{}}"#);
    judge(
        &said("bring the call forward from the 19th to the 12th at 8:20"),
        &at,
        &[r#"{"start":"2026-12-12T08:20"}"#],
        &[r#"{"start":"2026-12-19T08:20"}"#],
    );
    judge(
        &said("until 7 tomorrow morning"),
        &at,
        &[r#"{"until":"2026-11-22T07:00"}"#],
        &[r#"{"until":"2026-11-22T19:00"}"#],
    );
}

#[test]
fn how_long_before_is_not_how_long() {
    let call = of(r#"{"duration_minutes":{},"reminder_minutes":{}}"#);
    judge(
        &said("a 20-min call, reminder 5 minutes before"),
        &call,
        &[r#"{"duration_minutes":20,"reminder_minutes":5}"#],
        &[r#"{"duration_minutes":5}"#],
    );
}

#[test]
fn a_value_that_denies_is_no_denial() {
    let close = of(r#"{"state_reason":{"enum":["completed","not_planned"]}}"#);
    judge(
        &said("close it as not planned"),
        &close,
        &[r#"{"state_reason":"not_planned"}"#],
        &[r#"{"state_reason":"completed"}"#],
    );
}
