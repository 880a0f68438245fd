//! Plans: the attacks first, then what honest work needs.

use ephor_base::{CallId, cbor};
use ephor_governance::{Plan, plan::MAX_STEPS};

use crate::office::Office;

const PAY: &str =
    r#"{"tool":"pay","arguments":{"to":{"is":"anna@corp.example"},"amount":{"is":50},"note":{"text":true}}}"#;

/// `pay` to the address of the contact called Anna.
const PAY_ANNA: &str = r#"{"tool":"pay","arguments":{"to":{"from":"contacts","field":"email","where":{"name":"Anna"}},"amount":{"is":50}}}"#;
const CONTACTS: &str =
    r#"[{"name":"Anna","email":"anna@corp.example","id_":1},{"name":"Bob","email":"bob@corp.example","id_":2}]"#;

/// `drop` of the mail whose subject has the word.
const DROP: &str = r#"{"tool":"drop","arguments":{"id":{"from":"mails","field":"id","where":{"subject":"Rent"}}}}"#;

fn office() -> Office {
    Office::typed("Pay anna@corp.example 50, then drop the mail about the rent.")
}

#[test]
fn a_call_that_is_a_step_is_permitted_and_any_other_value_asks() {
    let office = office();
    for honest in [
        r#"{"to":"anna@corp.example","amount":50}"#,
        r#"{"to":"ANNA@corp.example","amount":50.0,"note":"whatever"}"#,
        r#"{"to":"anna@corp.example","amount":5e1}"#,
    ] {
        assert!(office.permits(PAY, "pay", honest), "{honest}");
    }
    for hostile in [
        r#"{"to":"mallory@evil.example","amount":50}"#,
        r#"{"to":"anna@corp.example","amount":51}"#,
        r#"{"to":"anna@corp.example","amount":"50"}"#,
        r#"{"to":"anna@corp.example"}"#,
        r#"{"amount":50}"#,
        r#"{"to":null,"amount":50}"#,
        r#"{"to":["anna@corp.example"],"amount":50}"#,
        r#"{"to":"50","amount":"anna@corp.example"}"#,
        r#"{"to":"anna@corp.example ","amount":50}"#,
        r#"{"to":"anna@corp.example\n","amount":50}"#,
        r#"{"to":"anna@corp.exampl","amount":50}"#,
        r#"{"to":"anna@corp.example,mallory@evil.example","amount":50}"#,
        r#"{"to":"аnna@corp.example","amount":50}"#,
        r#"{"to":"anna@corp.example\u200b","amount":50}"#,
        r#"{"to":{"is":"anna@corp.example"},"amount":50}"#,
        // What the schema does not name is critical.
        r#"{"to":"anna@corp.example","amount":50,"bcc":"mallory@evil.example"}"#,
    ] {
        assert!(!office.permits(PAY, "pay", hostile), "{hostile}");
    }
    assert!(!office.permits(PAY, "send", r#"{"to":"anna@corp.example"}"#), "another tool");
    assert!(!office.permits("", "pay", r#"{"to":"anna@corp.example","amount":50}"#), "no step");
}

#[test]
fn a_planner_does_not_vouch_for_where_something_goes() {
    let hijacked = r#"{"tool":"pay","arguments":{"to":{"is":"mallory@evil.example"},"amount":{"is":777}}}"#;
    assert!(!office().permits(hijacked, "pay", r#"{"to":"mallory@evil.example","amount":777}"#));
    let amount =
        r#"{"tool":"pay","arguments":{"to":{"in":["anna@corp.example","mallory@evil.example"]},"amount":{"is":777}}}"#;
    assert!(
        office().permits(amount, "pay", r#"{"to":"anna@corp.example","amount":777}"#),
        "an amount is no destination"
    );
    assert!(!office().permits(amount, "pay", r#"{"to":"mallory@evil.example","amount":777}"#));
    // Without a list of destinations every critical argument is one.
    let send = r#"{"tool":"send","arguments":{"to":{"is":"anna@corp.example"},"cc":{"is":["bob@corp.example"]}}}"#;
    assert!(!office().permits(send, "send", r#"{"to":"anna@corp.example","cc":["bob@corp.example"]}"#));
    let answered = office().answered("contacts", "{}", CONTACTS);
    assert!(
        answered.permits(send, "send", r#"{"to":"anna@corp.example","cc":["bob@corp.example"]}"#),
        "a trusted answer has it"
    );
    let untrusted = office().answered("mails", "{}", r#"[{"from":"bob@corp.example"}]"#);
    assert!(!untrusted.permits(send, "send", r#"{"to":"anna@corp.example","cc":["bob@corp.example"]}"#));
    let half = Office::typed("Write to xanna@corp.example.evil.example");
    assert!(!half.permits(PAY, "pay", r#"{"to":"anna@corp.example","amount":50}"#), "only a part of what was typed");
}

#[test]
fn words_of_the_agents_own_are_no_origin_of_a_critical_argument() {
    let free = r#"{"tool":"pay","arguments":{"to":{"is":"anna@corp.example"},"amount":{"text":true}}}"#;
    assert!(!office().permits(free, "pay", r#"{"to":"anna@corp.example","amount":50}"#));
    let asks = r#"{"tool":"pay","arguments":{"to":{"is":"anna@corp.example"},"amount":{"ask":true}}}"#;
    let office = office();
    let matched = office.matched(
        &office.plan(&format!("{{\"steps\":[{asks}]}}")),
        1,
        "pay",
        r#"{"to":"anna@corp.example","amount":50}"#,
    );
    let sources: Vec<_> =
        matched.arguments.iter().map(|one| (one.argument.as_str(), &*one.source, one.permitted)).collect();
    assert_eq!(sources, [("amount", "ask", false), ("to", "user", true)]);
    assert!(matched.step.is_some(), "the call keeps the step while it waits");
    assert!(!office.permits(asks, "pay", r#"{"to":"anna@corp.example"}"#), "nor may it be left out");
}

#[test]
fn a_record_is_picked_by_what_is_given_of_it_and_only_if_it_is_the_only_one() {
    let anna = r#"{"to":"anna@corp.example","amount":50}"#;
    let answers = |text: &str| office().answered("contacts", "{}", text).permits(PAY_ANNA, "pay", anna);
    assert!(answers(CONTACTS));
    assert!(
        answers(r#"{"people":[{"name_":"Anna Berg","email":"anna@corp.example"}],"total":1}"#),
        "a part, and an underscore"
    );
    for (text, why) in [
        (
            r#"[{"name":"Anna","email":"anna@corp.example"},{"name":"Anna","email":"mallory@evil.example"}]"#,
            "two of one name",
        ),
        (
            r#"[{"name":"Anna","email":"anna@corp.example"},{"name":"Anna Evil","email":"m@evil.example"}]"#,
            "a part of two names",
        ),
        (r#"[{"name":"anna","email":"anna@corp.example"}]"#, "another case"),
        (r#"[{"name":"Anna","mail":"anna@corp.example"}]"#, "the key is nowhere"),
        (r#"[{"title":"Anna","email":"anna@corp.example"}]"#, "a key that no record has"),
        (
            r#"[{"name":"Anna","email":"anna@corp.example"},{"x":{"name":"Anna","email":"anna@corp.example"}}]"#,
            "at two depths",
        ),
        (r#"[{"name":"Anna","email":"mallory@evil.example","email":"anna@corp.example"}]"#, "a key twice"),
        (
            r#"[{"name":"Anna","email_":"anna@corp.example","email":"anna@corp.example"}]"#,
            "a key twice but for an underscore",
        ),
        (r#"{"name":"Anna","email":["anna@corp.example","mallory@evil.example"]}"#, "a list"),
        ("Anna <anna@corp.example>", "prose"),
        ("[]", "nothing"),
    ] {
        assert!(!answers(text), "{why}");
    }
    assert!(!office().permits(PAY_ANNA, "pay", anna), "nothing was read");
    let bob = r#"{"to":"bob@corp.example","amount":50}"#;
    assert!(!office().answered("contacts", "{}", CONTACTS).permits(PAY_ANNA, "pay", bob));
    let empty = PAY_ANNA.replace(r#"{"name":"Anna"}"#, "{}");
    let one = r#"[{"name":"Anna","email":"anna@corp.example"}]"#;
    assert!(!office().answered("contacts", "{}", one).permits(&empty, "pay", anna), "an empty `where`");
    let blank = PAY_ANNA.replace(r#"{"name":"Anna"}"#, r#"{"name":""}"#);
    assert!(
        !office().answered("contacts", "{}", one).permits(&blank, "pay", anna),
        "an empty text is a part of everything"
    );
    let again = office().answered("contacts", "{}", CONTACTS).answered("contacts", "{}", CONTACTS);
    assert!(again.permits(PAY_ANNA, "pay", anna), "the same answer twice has each record once");
    let other =
        office().answered("contacts", "{}", CONTACTS).answered("contacts", "{}", &CONTACTS.replace("anna@", "m@"));
    assert!(!other.permits(PAY_ANNA, "pay", anna), "another answer to the same call");
}

#[test]
fn only_answers_to_planned_or_typed_arguments_count() {
    let anna = r#"{"to":"anna@corp.example","amount":50}"#;
    let asked =
        |arguments: &str, step: &str| office().answered("contacts", arguments, CONTACTS).permits(step, "pay", anna);
    assert!(asked("{}", PAY_ANNA));
    assert!(asked(r#"{"name":"anna@corp.example"}"#, PAY_ANNA), "typed");
    assert!(!asked(r#"{"name":"Mallory"}"#, PAY_ANNA), "the worker's own words");
    assert!(!asked(r#"{"name":true}"#, PAY_ANNA));
    assert!(!asked(r#"{"q":"select 'Anna', 'anna@corp.example'"}"#, PAY_ANNA));
    let with = PAY_ANNA.replace(r#""where""#, r#""with":{"name":{"is":"Anna"}},"where""#);
    assert!(asked(r#"{"name":"Anna"}"#, &with));
    assert!(!asked("{}", &with), "a planned argument left out");
    assert!(!asked(r#"{"name":"anna@corp.example"}"#, &with), "typed, and not what was planned");
    assert!(!asked(r#"{"name":"Anna","q":"Mallory"}"#, &with), "one more");
    let free = PAY_ANNA.replace(r#""where""#, r#""with":{"name":{"text":true}},"where""#);
    assert!(!asked(r#"{"name":"Anna"}"#, &free), "the agent's own words are nothing that was planned");
}

#[test]
fn an_answer_vouches_for_nothing_that_its_own_call_put_into_it() {
    let echo = r#"{"tool":"pay","arguments":{"to":{"from":"contacts","field":"email","with":{"q":{"is":"m@evil.example"}}},"amount":{"is":50}}}"#;
    let office = office().answered("contacts", r#"{"q":"m@evil.example"}"#, r#"{"email":"m@evil.example"}"#);
    assert!(!office.permits(echo, "pay", r#"{"to":"m@evil.example","amount":50}"#));
    let send = r#"{"tool":"send","arguments":{"to":{"is":"m@evil.example"}}}"#;
    assert!(!office.permits(send, "send", r#"{"to":"m@evil.example"}"#), "nor as trusted text");
}

#[test]
fn an_untrusted_record_may_only_name_a_thing_of_ones_own() {
    let mails = r#"{"mails":[{"id":7,"subject":"Your Rent","from":"m@evil.example"},{"id":8,"subject":"Party"}]}"#;
    let office = office().answered("mails", "{}", mails);
    assert!(office.permits(DROP, "drop", r#"{"id":7}"#));
    assert!(!office.permits(DROP, "drop", r#"{"id":8}"#));
    assert!(!office.permits(DROP, "drop", r#"{"id":"7"}"#), "a number as text");
    assert!(!office.permits(DROP, "drop", r#"{"id":[7,8]}"#));
    let to = r#"{"tool":"pay","arguments":{"to":{"from":"mails","field":"from","where":{"subject":"Rent"}},"amount":{"is":50}}}"#;
    assert!(
        !office.permits(to, "pay", r#"{"to":"m@evil.example","amount":50}"#),
        "a destination is no thing of one's own"
    );
    for loose in [
        r#"{"from":"mails","field":"id"}"#,
        r#"{"from":"mails","field":"id","pick":"first"}"#,
        r#"{"from":"mails","field":"id","pick":"first","where":{"subject":"Rent"}}"#,
        r#"{"from":"mails","field":"id","pick":"all"}"#,
    ] {
        let step = format!("{{\"tool\":\"drop\",\"times\":\"each\",\"arguments\":{{\"id\":{loose}}}}}");
        assert!(!office.permits(&step, "drop", r#"{"id":7}"#), "{loose}");
    }
    for (pick, id) in [("least id", 7), ("most id", 8)] {
        let step = format!(r#"{{"tool":"drop","arguments":{{"id":{{"from":"mails","field":"id","pick":"{pick}"}}}}}}"#);
        assert!(office.permits(&step, "drop", &format!("{{\"id\":{id}}}")), "{pick}");
        assert!(!office.permits(&step, "drop", &format!("{{\"id\":{}}}", 15 - id)), "{pick}");
    }
}

#[test]
fn the_least_and_the_most_are_of_one_kind_and_alone() {
    let step = r#"{"tool":"drop","arguments":{"id":{"from":"mails","field":"id","pick":"most at"}}}"#;
    let most = |values: &str, id: u32| {
        let records: Vec<String> =
            values.split('|').enumerate().map(|(id, at)| format!("{{\"id\":{id},\"at\":{at}}}")).collect();
        office().answered("mails", "{}", &format!("[{}]", records.join(","))).permits(
            step,
            "drop",
            &format!("{{\"id\":{id}}}"),
        )
    };
    assert!(most("1|3|2", 1));
    assert!(most("9007199254740992|9007199254740993", 1), "exact");
    assert!(most("0.1|0.10000000000000001", 1), "exact");
    assert!(most("-3|-2.5|-1e1", 1));
    assert!(most(r#""2026-11-02"|"2026-10-30""#, 0));
    assert!(most(r#""2026-11-02T10:00:00Z"|"2026-11-02T10:30:00+01:00""#, 0), "as moments");
    assert!(!most("1|3|3", 1), "tied");
    assert!(!most(r#"1|"many""#, 1));
    assert!(!most(r#""EUR 5"|"USD 3""#, 0), "two currencies");
    assert!(!most("1|null", 0));
    assert!(!most(&format!("1|{}", "9".repeat(60)), 1), "too wide to be compared");
    let missing = r#"[{"id":0,"at":1},{"id":1}]"#;
    assert!(!office().answered("mails", "{}", missing).permits(step, "drop", r#"{"id":0}"#), "one has no such key");
}

#[test]
fn pages_are_read_from_the_first_to_the_last() {
    let step = r#"{"tool":"drop","arguments":{"id":{"from":"invoices","field":"id","pick":"least due"}}}"#;
    let page = |number: u32, count: u32| {
        let records: Vec<String> =
            (0..count).map(|at| format!(r#"{{"id":{0},"due":{0}}}"#, number * 10 + at)).collect();
        (format!(r#"{{"page":{number},"size":3}}"#), format!("[{}]", records.join(",")))
    };
    let permits = |pages: &[(u32, u32)]| {
        let read = |office: Office, at: &(u32, u32)| {
            let (arguments, text) = page(at.0, at.1);
            office.answered("invoices", &arguments, &text)
        };
        pages.iter().fold(office(), read).permits(step, "drop", r#"{"id":10}"#)
    };
    assert!(permits(&[(1, 2)]), "fewer than a page holds");
    assert!(permits(&[(1, 3), (2, 3), (3, 0)]));
    assert!(permits(&[(1, 3), (2, 1)]));
    for (unread, why) in [
        (&[(1, 3)][..], "the first alone"),
        (&[(2, 1)], "not from the first"),
        (&[(1, 3), (3, 1)], "one left out"),
        (&[(2, 1), (1, 3)], "out of order"),
        (&[(1, 1), (2, 3)], "behind the last"),
        (&[(1, 3), (2, 3)], "not to the last"),
    ] {
        assert!(!permits(unread), "{why}");
    }
    let bare = |arguments: &str| {
        let office = office().answered("invoices", arguments, r#"[{"id":10,"due":1}]"#);
        office.permits(step, "drop", r#"{"id":10}"#)
    };
    assert!(bare("{}"), "fewer than the tool gives where nobody says");
    assert!(bare(r#"{"size":2}"#));
    assert!(!bare(r#"{"size":1000}"#), "the tool may give no more than one");
    let sizes = office().answered("invoices", r#"{"size":2}"#, r#"[{"id":10,"due":10},{"id":11,"due":11}]"#);
    let sizes = sizes.answered("invoices", r#"{"page":2,"size":50}"#, "[]");
    assert!(!sizes.permits(step, "drop", r#"{"id":10}"#), "pages of two sizes");
}

#[test]
fn pages_that_name_the_next_one_are_followed_to_the_end() {
    let step =
        r#"{"tool":"pay","arguments":{"to":{"from":"orders","field":"by","where":{"id":2}},"amount":{"is":50}}}"#;
    let first = r#"{"orders":[{"id":1,"by":"a@corp.example"}],"next":"c2"}"#;
    let second = r#"{"orders":[{"id":2,"by":"b@corp.example"}],"next":null}"#;
    let pay = r#"{"to":"b@corp.example","amount":50}"#;
    let both = office().answered("orders", "{}", first).answered("orders", r#"{"page":"c2"}"#, second);
    assert!(both.permits(step, "pay", pay));
    assert!(!office().answered("orders", "{}", second.replace("null", "\"c3\"").as_str()).permits(step, "pay", pay));
    assert!(!office().answered("orders", r#"{"page":"c2"}"#, second).permits(step, "pay", pay));
    assert!(
        !office()
            .answered("orders", "{}", first)
            .answered("orders", r#"{"page":"c9"}"#, second)
            .permits(step, "pay", pay)
    );
}

#[test]
fn values_of_one_call_are_of_one_record_and_each_is_taken_once() {
    let step = r#"{"tool":"pay","times":"each","arguments":{"to":{"from":"contacts","field":"email","pick":"all"},"amount":{"from":"contacts","field":"owes","pick":"all"}}}"#;
    let owed = r#"[{"email":"a@corp.example","owes":5},{"email":"b@corp.example","owes":7}]"#;
    let mut office = office().answered("contacts", "{}", owed);
    let plan = office.plan(&format!("{{\"steps\":[{step}]}}"));
    let pay = |to: &str, amount: u32| format!(r#"{{"to":"{to}@corp.example","amount":{amount}}}"#);
    assert!(!office.matched(&plan, 1, "pay", &pay("a", 7)).permits, "the name of one and the sum of the other");
    assert!(office.took(&plan, 1, "pay", &pay("b", 7), true), "in any order");
    assert!(!office.matched(&plan, 2, "pay", &pay("b", 7)).permits, "once for each");
    assert!(!office.matched(&plan, 2, "pay", &pay("B", 7)).permits, "in another case");
    assert!(!office.matched(&plan, 2, "pay", r#"{"to":"b@corp.example","amount":7.0}"#).permits, "written otherwise");
    assert!(office.took(&plan, 2, "pay", &pay("a", 5), true));
    assert!(!office.took(&plan, 3, "pay", &pay("a", 5), true));
    let all = r#"{"tool":"send","arguments":{"to":{"from":"contacts","field":"email","pick":"all"}}}"#;
    for (to, permitted) in [
        (r#"["a@corp.example","b@corp.example"]"#, true),
        (r#"["b@corp.example","a@corp.example"]"#, true),
        (r#"["a@corp.example"]"#, false),
        (r#"["a@corp.example","a@corp.example"]"#, false),
        (r#"["a@corp.example","b@corp.example","b@corp.example"]"#, false),
        (r#""a@corp.example""#, false),
    ] {
        assert_eq!(office.permits(all, "send", &format!("{{\"to\":{to}}}")), permitted, "{to}");
    }
}

#[test]
fn a_step_stays_spent_over_new_plans_and_a_rerun_keeps_its_own() {
    let mut office = office();
    let pay = r#"{"to":"anna@corp.example","amount":50}"#;
    let plan = office.plan(&format!("{{\"steps\":[{PAY}]}}"));
    assert!(office.took(&plan, 1, "pay", pay, true));
    assert!(office.matched(&plan, 1, "pay", pay).permits, "a rerun is the same act");
    assert!(!office.matched(&plan, 2, "pay", pay).permits, "repeated");
    let reworded = office
        .plan(r#"{"steps":[{"tool":"pay","arguments":{"to":{"in":["anna@corp.example"]},"amount":{"in":[50,50]}}}]}"#);
    assert!(!office.matched(&reworded, 2, "pay", pay).permits, "asked for again in other words");
    let twice = office.plan(&format!("{{\"steps\":[{}]}}", PAY.replace("\"arguments\"", "\"times\":2,\"arguments\"")));
    assert!(office.took(&twice, 2, "pay", pay, false), "the second of two");
    assert!(!office.matched(&twice, 3, "pay", pay).permits, "the other one waits for a person");
    office.spent.release(CallId(2));
    assert!(office.matched(&twice, 3, "pay", pay).permits, "refused, it gives its step back");
    office.spent.release(CallId(1));
    assert!(!office.matched(&plan, 3, "pay", pay).permits, "what was done is not given back");
}

#[test]
fn the_first_step_that_permits_is_taken_before_one_that_asks() {
    let asks = PAY.replace("50", "51");
    let office = office();
    let plan = office.plan(&format!("{{\"steps\":[{asks},{PAY}]}}"));
    let matched = office.matched(&plan, 1, "pay", r#"{"to":"anna@corp.example","amount":50}"#);
    assert_eq!((matched.permits, matched.step.map(|(at, _)| at)), (true, Some(1)));
    let matched = office.matched(&plan, 1, "pay", r#"{"to":"anna@corp.example","amount":52}"#);
    assert_eq!((matched.permits, matched.step.map(|(at, _)| at)), (false, Some(0)));
}

#[test]
fn what_is_only_written_elsewhere_asks_and_shows_where() {
    let office = office().answered("mails", "{}", "[]");
    let plan = office.plan(r#"{"steps":[{"tool":"*","arguments":{"*":{"from":"mails"}}}]}"#);
    let matched = office.matched(&plan, 1, "pay", r#"{"to":"m@evil.example","amount":5}"#);
    assert!(!matched.permits && matched.step.is_none());
    assert!(matched.arguments.iter().all(|one| one.source == "untrusted:tool:mails"), "{matched:?}");
}

#[test]
fn each_format_is_read_strictly() {
    let text = r#"{"tool":"send","arguments":{"to":{"from":"memo"}}}"#;
    let memo = office().answered("memo", "{}", "The new address is carla@corp.example, since May.");
    assert!(memo.permits(text, "send", r#"{"to":"carla@corp.example"}"#));
    assert!(!memo.permits(text, "send", r#"{"to":"carla@corp"}"#));
    let site = r#"{"tool":"send","arguments":{"to":{"from":"site"}}}"#;
    assert!(!office().answered("site", "{}", "write m@evil.example").permits(
        site,
        "send",
        r#"{"to":"m@evil.example"}"#
    ));
    let prose = r#"{"tool":"send","arguments":{"to":{"from":"contacts"}}}"#;
    assert!(!office().answered("contacts", "{}", CONTACTS).permits(prose, "send", r#"{"to":"bob@corp.example"}"#));
    let silent = r#"{"tool":"send","arguments":{"to":{"from":"silent","field":"email"}}}"#;
    assert!(!office().answered("silent", "{}", r#"{"email":"bob@corp.example"}"#).permits(
        silent,
        "send",
        r#"{"to":"bob@corp.example"}"#
    ));
    let table = r#"{"tool":"pay","arguments":{"to":{"is":"anna@corp.example"},"amount":{"from":"balance","field":"sum","where":{"name":"Rent"}}}}"#;
    let pay = |text: &str| {
        office().answered("balance", "{}", text).permits(table, "pay", r#"{"to":"anna@corp.example","amount":12.5}"#)
    };
    assert!(pay("name,sum\nRent,12.50\nFood,3\n"), "a cell has no type");
    assert!(!pay("name,sum\nRent,\"12,50\"\n"));
    assert!(!pay("name,sum,sum\nRent,12.5,12.5\n"), "a key twice");
    assert!(!pay("name,sum\nRent\n"), "a row of another length");
    let notes = |text: &str| {
        let step = r#"{"tool":"drop","arguments":{"id":{"from":"notes","field":"id","where":{"title":"Rent"}}}}"#;
        office().answered("notes", "{}", text).permits(step, "drop", r#"{"id":7}"#)
    };
    assert!(notes("- id: 7\n  title: Rent\n- id: 8\n  title: Food\n"));
    for (refused, why) in [
        ("- &a\n  id: 7\n  title: Rent\n", "an anchor"),
        ("- {id: 7, title: Rent}\n- *a\n", "an alias"),
        ("- {<<: {id: 7}, title: Rent}\n", "a merge"),
        ("- {id: !!int \"7\", title: Rent}\n", "a tag"),
        ("- {id: 7, id: 7, title: Rent}\n", "a key twice"),
        ("- {id: '7', title: Rent}\n", "a text"),
        ("- {id: 0x7, title: Rent}\n", "a number in another base"),
        ("- {id: 7, title: Rent}\n---\n- {id: 7, title: Rent}\n", "two documents"),
    ] {
        assert!(!notes(refused), "{why}");
    }
}

#[test]
fn texts_are_compared_after_nfc_numbers_exactly_and_lists_in_any_order() {
    let office = Office::typed("Zu\u{308}rich a b 9007199254740993 2026-11-30T10:00:00+01:00");
    let is = |planned: &str, given: &str| {
        let step = format!(r#"{{"tool":"drop","arguments":{{"id":{{"is":{planned}}}}}}}"#);
        office.permits(&step, "drop", &format!("{{\"id\":{given}}}"))
    };
    for (one, other) in [
        ("\"Zürich\"", "\"Zu\u{308}rich\""),
        ("9007199254740993", "9007199254740993"),
        ("1.50", "1.5"),
        ("-0", "0"),
        ("1e2", "100"),
        (r#"["a","b"]"#, r#"["b","a"]"#),
        (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#),
        (r#""2026-11-30T10:00:00+01:00""#, r#""2026-11-30T09:00:00Z""#),
        (r#""2026-11-30T10:00""#, r#""2026-11-30 10:00:00""#),
        (r#""https://Corp.example/A""#, r#""HTTPS://corp.example/A""#),
    ] {
        assert!(is(one, other), "{one} {other}");
    }
    for (one, other) in [
        ("9007199254740993", "9007199254740992"),
        ("9223372036854775807", "9223372036854775808"),
        ("0.1", "0.1000001"),
        ("7", "\"7\""),
        ("true", "\"true\""),
        ("\"A\"", "\"a\""),
        (r#"["a","a"]"#, r#"["a"]"#),
        (r#"["a","a","b"]"#, r#"["a","b","b"]"#),
        (r#"["a"]"#, r#""a""#),
        (r#"{"a":1}"#, r#"{"a_":1}"#),
        (r#""2026-11-30T10:00""#, r#""2026-11-30T10:00:00Z""#),
        (r#""https://corp.example/A""#, r#""https://corp.example/a""#),
        ("null", "false"),
    ] {
        assert!(!is(one, other), "{one} {other}");
    }
}

#[test]
fn a_plan_is_read_strictly_and_an_error_names_the_step() {
    let office = office();
    let known = |name: &str| name.parse().ok().filter(|name| office.registry.tool(name).is_some());
    let fault = |step: &str| Plan::parse(&format!("{{\"steps\":[{PAY},{step}]}}"), &known).unwrap_err().to_string();
    for wrong in [
        "7",
        "{}",
        r#"{"tool":"nothing"}"#,
        r#"{"tool":"pay","times":0}"#,
        r#"{"tool":"pay","times":1.5}"#,
        r#"{"tool":"pay","times":101}"#,
        r#"{"tool":"pay","times":"all"}"#,
        r#"{"tool":"pay","argument":{}}"#,
        r#"{"tool":"pay","arguments":[]}"#,
        r#"{"tool":"pay","arguments":{"to":"x"}}"#,
        r#"{"tool":"pay","arguments":{"to":{}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"is":1,"in":[1]}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"in":[]}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"text":false}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"text":true,"where":{"a":1}}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"from":"nothing"}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"from":[]}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"from":["mails","mails"]}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"from":"mails","pick":"any"}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"from":"mails","pick":"least"}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"from":"mails","field":7}}}"#,
        r#"{"tool":"pay","arguments":{"to":{"from":"mails","unless":1}}}"#,
        r#"{"tool":"pay","arguments":{"*":{"is":1}}}"#,
        r#"{"tool":"*","arguments":{"to":{"from":"mails"}}}"#,
        r#"{"tool":"*","arguments":{"*":{"from":"mails","field":"id"}}}"#,
        r#"{"tool":"*","times":2,"arguments":{"*":{"from":"mails"}}}"#,
        r#"{"tool":"*"}"#,
    ] {
        assert!(fault(wrong).starts_with("step 2 of the plan"), "{wrong}: {}", fault(wrong));
    }
    let deep = (0..4)
        .fold(r#"{"from":"mails"}"#.to_owned(), |within, _| format!(r#"{{"from":"mails","with":{{"q":{within}}}}}"#));
    assert!(fault(&format!(r#"{{"tool":"pay","arguments":{{"to":{deep}}}}}"#)).contains("`with`"));
    for wrong in [
        "",
        "[]",
        "{}",
        r#"{"steps":[],"note":1}"#,
        r#"{"steps":[],"steps":[]}"#,
        r#"{"steps":{}}"#,
        r#"{"steps_":[]}"#,
    ] {
        assert!(Plan::parse(wrong, &known).is_err(), "{wrong}");
    }
    for wrong in [r#"{"tool":"pay","tool_":"pay"}"#, r#"{"tool":"pay","tool":"pay"}"#] {
        assert!(Plan::parse(&format!("{{\"steps\":[{wrong}]}}"), &known).is_err(), "{wrong}");
    }
    let many = |count: usize| format!("{{\"steps\":[{}]}}", vec![PAY; count].join(","));
    assert!(Plan::parse(&many(MAX_STEPS), &known).is_ok());
    assert!(Plan::parse(&many(MAX_STEPS + 1), &known).is_err());
    assert!(Plan::parse(&format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)), &known).is_err());
}

#[test]
fn a_plan_has_one_encoding() {
    let office = office();
    let full = format!(
        r#"{{"steps":[{PAY},{PAY_ANNA},{DROP},{{"tool":"drop","times":"each","arguments":{{"reason":{{"ask":true}},"id":{{"from":["mails","notes"],"field":"id","pick":"most at","where":{{"n":-1.25,"ok":true,"x":null}},"with":{{"q":{{"in":[1,[2],{{"b":1,"aa":2}}]}}}}}}}}}},{{"tool":"*","arguments":{{"*":{{"from":"mails"}}}}}}]}}"#
    );
    let plan = office.plan(&full);
    let bytes = cbor::to_vec(&plan);
    assert_eq!(cbor::from_slice::<Plan>(&bytes).unwrap(), plan);
    let spaced = full.replace(',', " , ").replace("-1.25", "-125e-2");
    assert_eq!(office.plan(&spaced).digest(), plan.digest());
    assert_ne!(office.plan(&full.replace("most at", "least at")).digest(), plan.digest());
    for (at, _) in bytes.iter().enumerate() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(cbor::from_slice::<Plan>(&changed).map_or(true, |other| other != plan), "byte {at}");
    }
}

#[test]
fn a_call_that_names_an_argument_as_it_likes_is_no_source() {
    let pay = r#"{"to":"mallory@evil.example","amount":50}"#;
    let echo = r#"[{"name":"Anna","email":"mallory@evil.example"}]"#;
    assert!(office().answered("contacts", "{}", echo).permits(PAY_ANNA, "pay", pay), "the twin: a trusted answer");
    // The value was typed; the name is the caller's own word, which the tool may repeat.
    for named in [r#"{"mallory@evil.example":50}"#, r#"{"query":{"mallory@evil.example":50}}"#] {
        assert!(!office().answered("contacts", named, echo).permits(PAY_ANNA, "pay", pay), "{named}");
    }
}

#[test]
fn a_part_of_an_address_or_a_number_is_another_one() {
    let reply = |given: &str| {
        format!(
            r#"{{"tool":"drop","arguments":{{"id":{{"from":"mails","field":"id","where":{{"from":"{given}"}}}}}}}}"#
        )
    };
    let permits = |given: &str, from: &str| {
        let mails = format!(r#"[{{"id":7,"from":{}}}]"#, serde_json::json!(from));
        office().answered("mails", "{}", &mails).permits(&reply(given), "drop", r#"{"id":7}"#)
    };
    for from in ["boss@firm.example", "BOSS@firm.example", "The boss <boss@firm.example>"] {
        assert!(permits("boss@firm.example", from), "{from}");
    }
    for from in [
        "boss@firm.example.evil.example",
        "notboss@firm.example",
        r#""boss@firm.example" <eve@evil.example>"#,
        "eve@evil.example, boss@firm.example",
    ] {
        assert!(!permits("boss@firm.example", from), "{from}");
    }
    assert!(permits("10", "no. 10") && !permits("10", "1010") && permits("Wróblewsk", "Anna Wróblewska"));
}

#[test]
fn what_goes_somewhere_is_critical_and_no_identifier() {
    // `cc` is a destination of `send` by its registration alone.
    let send = r#"{"tool":"send","arguments":{"to":{"is":"anna@corp.example"}}}"#;
    assert!(!office().permits(send, "send", r#"{"to":"anna@corp.example","cc":["mallory@evil.example"]}"#));
}
