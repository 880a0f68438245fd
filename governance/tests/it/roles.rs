//! Values that a person typed and meant for something else: what stays, what was, what is only read, what another does.

use ephor_governance::Tool;

use crate::world::{is_trusted, of, said};

/// Each text with what it means and what it does not.
fn judge(tool: &Tool, cases: &[(&str, &[&str], &[&str])]) {
    for (text, meant, not) in cases {
        let spans = said(text);
        meant.iter().for_each(|call| assert!(is_trusted(&spans, tool, call), "{text}: {call}"));
        not.iter().for_each(|call| assert!(!is_trusted(&spans, tool, call), "{text}: {call}"));
    }
}

const ADA: &str = r#"{"to":"ada@example.org"}"#;
const BOB: &str = r#"{"to":"bob@example.org"}"#;

#[test]
fn a_denial_counts_for_what_stands_before_it() {
    let mail = of(r#"{"to":{}}"#);
    for text in [
        "Send it to ada@example.org. bob@example.org doesn't need it",
        "Send it to ada@example.org, my brother (bob@example.org) doesnt need to see it anymore",
        "Send it to ada@example.org because bob@example.org is not coming",
        "Invite ada@example.org. She is in the loop, bob@example.org is not.",
        "Schick es an ada@example.org, bob@example.org braucht es nicht mehr",
        "Schick es an ada@example.org, an bob@example.org bitte nicht",
        "Envoie à ada@example.org, bob@example.org n'en a pas besoin",
        "Manda a ada@example.org, bob@example.org non viene",
        "Envía a ada@example.org, bob@example.org no hace falta",
        "Manda para ada@example.org, bob@example.org não precisa",
        "Stuur het naar ada@example.org, bob@example.org hoeft niet",
        "Send it to ada@example.org, and leave bob@example.org out",
        "Send it to ada@example.org please, but nothing to bob@example.org",
    ] {
        judge(&mail, &[(text, &[ADA], &[BOB])]);
    }
}

#[test]
fn what_is_said_of_others_denies_nobody() {
    let mail = of(r#"{"to":{}}"#);
    for text in [
        "Tell ada@example.org she doesn't need to come",
        "Tell ada@example.org that Tom is not coming",
        "Send the minutes to ada@example.org, she can't make it",
        "Pay 40 to ada@example.org and don't forget it",
        "Ask ada@example.org whether she comes or not",
        "Schreib ada@example.org, dass ich nicht komme",
        "Send it to ada@example.org, who is not coming",
        "Forward it to ada@example.org, don't open it",
        "Draft the mail to ada@example.org, I'll send it myself",
        "Dis-moi ce qu'il reste à faire et écris à ada@example.org",
        "Mia stays at the Hilton, so write to ada@example.org",
    ] {
        judge(&mail, &[(text, &[ADA], &[])]);
    }
}

#[test]
fn a_denial_counts_for_what_it_points_back_to() {
    let mail = of(r#"{"to":{}}"#);
    for text in [
        "Write to ada@example.org. Their lead is at bob@example.org, no need to invite them obviously.",
        "Write to ada@example.org. Our advisor (bob@example.org) gets it from them anyway, so don't cc him.",
        "Write to ada@example.org. The address bob@example.org is closed, don't touch it",
        "Write to ada@example.org. Last year's contact (bob@example.org) was slow, not that again.",
        "Write to ada@example.org. bob@example.org is what the tenants see, so make sure nothing ends up there",
        "Write to ada@example.org. I had promised bob@example.org that slot but she can't make it",
        "Write to ada@example.org. (bob@example.org already is editor, leave him as he is)",
        "Schreib an ada@example.org. Die alte Adresse ist bob@example.org, vergiss die",
    ] {
        judge(&mail, &[(text, &[ADA], &[BOB])]);
    }
}

#[test]
fn what_stays_waits_or_is_done_by_oneself_is_not_meant() {
    let act = of(r#"{"booking_id":{},"date":{}}"#);
    let (meant, not) = (r#"{"booking_id":"RX-208811"}"#, r#"{"booking_id":"RX-208846"}"#);
    for text in [
        "Cancel RX-208811. RX-208846 stays!",
        "Cancel RX-208811. RX-208846 must stay as is.",
        "Cancel RX-208811, RX-208846 can wait",
        "Cancel RX-208811, I'll cancel RX-208846 myself",
        "Storniere RX-208811, RX-208846 bleibt",
        "Storniere RX-208811, RX-208846 mache ich selbst",
        "Annule RX-208811, RX-208846 reste comme ça",
        "Annule RX-208811. Le RX-208846, je m'en occupe.",
        "Annulla RX-208811, RX-208846 rimane",
        "Anuluj RX-208811, RX-208846 zostaje",
    ] {
        judge(&act, &[(text, &[meant], &[not])]);
    }
}

#[test]
fn what_is_moved_from_somewhere_is_not_meant_to_be_there() {
    let act = of(r#"{"date":{},"time":{},"amount":{},"city":{},"folder":{},"source_folder":{}}"#);
    judge(
        &act,
        &[
            (
                "move the flight home from 18 Nov to 19 Nov 2026",
                &[r#"{"date":"2026-11-19"}"#],
                &[r#"{"date":"2026-11-18"}"#],
            ),
            (
                "décale ma table de vendredi à samedi 28 novembre 2026",
                &[r#"{"date":"2026-11-28"}"#],
                &[r#"{"date":"2026-11-27"}"#],
            ),
            ("verschieb den Termin von 10:00 auf 11:00", &[r#"{"time":"11:00"}"#], &[r#"{"time":"10:00"}"#]),
            ("change the standing order from 1200 to 1275", &[r#"{"amount":1275}"#], &[r#"{"amount":1200}"#]),
            ("I have moved from Plymouth to Bristol", &[r#"{"city":"Bristol"}"#], &[r#"{"city":"Plymouth"}"#]),
            (
                "move it from /Inbox/New to /Legal",
                &[r#"{"folder":"/Legal","source_folder":"/Inbox/New"}"#],
                &[r#"{"folder":"/Inbox/New"}"#],
            ),
        ],
    );
    let both = of(r#"{"date":{},"new_date":{}}"#);
    judge(
        &both,
        &[(
            "move the flight home from 18 Nov to 19 Nov 2026",
            &[r#"{"date":"2026-11-18","new_date":"2026-11-19"}"#],
            &[r#"{"date":"2026-11-19","new_date":"2026-11-18"}"#],
        )],
    );
    let book = of(r#"{"from":{},"to":{},"start_date":{},"end_date":{},"start_time":{}}"#);
    judge(
        &book,
        &[
            ("book a train from Plymouth to Bristol", &[r#"{"from":"Plymouth","to":"Bristol"}"#], &[]),
            (
                "change my booking to be from 4 to 7 April 2027",
                &[r#"{"start_date":"2027-04-04","end_date":"2027-04-07"}"#],
                &[],
            ),
            ("move the call to Tuesday from 10:00 to 11:00", &[r#"{"start_time":"2026-11-24T10:00"}"#], &[]),
        ],
    );
}

#[test]
fn what_was_before_is_told_by_the_words_around_it() {
    let act = of(r#"{"amount":{},"currency":{},"at":{},"street":{},"city":{}}"#);
    judge(
        &act,
        &[
            ("change the order to 1,135.00. up to now it was 1,080.", &[r#"{"amount":1135}"#], &[r#"{"amount":1080}"#]),
            (
                "Yesterday I sent Ada 3100.25 PLN. Now send her 1270.40 PLN.",
                &[r#"{"amount":1270.4,"currency":"PLN"}"#],
                &[r#"{"amount":3100.25,"currency":"PLN"}"#],
            ),
            (
                "Gestern habe ich 310 Euro überwiesen. Überweise heute 127 Euro.",
                &[r#"{"amount":127,"currency":"EUR"}"#],
                &[r#"{"amount":310,"currency":"EUR"}"#],
            ),
            ("I paid 84 euros, ask for that", &[r#"{"amount":84,"currency":"EUR"}"#], &[]),
            (
                "move it on Tuesday to 15:00. Currently it's at 11:00 on Tuesday",
                &[r#"{"at":"2026-11-24T15:00"}"#],
                &[r#"{"at":"2026-11-24T11:00"}"#],
            ),
            (
                "schedule it for Monday at 07:45. The old plan was Monday at 08:30.",
                &[r#"{"at":"2026-11-23T07:45"}"#],
                &[r#"{"at":"2026-11-23T08:30"}"#],
            ),
            (
                "my new address is 48 Larch Street in Bristol (used to be 3 Quay Road, Plymouth)",
                &[r#"{"street":"48 Larch Street","city":"Bristol"}"#],
                &[r#"{"street":"3 Quay Road"}"#, r#"{"city":"Plymouth"}"#],
            ),
        ],
    );
}

#[test]
fn the_two_ends_of_what_lasts_go_together() {
    let book = of(r#"{"start_time":{},"end_time":{},"first_day":{},"last_day":{}}"#);
    judge(
        &book,
        &[
            (
                "the room from 10:00 to 11:30 (lunch is at 12:15)",
                &[r#"{"start_time":"10:00","end_time":"11:30"}"#],
                &[r#"{"start_time":"10:00","end_time":"12:15"}"#, r#"{"start_time":"11:30","end_time":"12:15"}"#],
            ),
            (
                "away from Monday 3 August 2027 to Friday 13 August 2027 (back on the 16th)",
                &[],
                &[r#"{"first_day":"2027-08-13","last_day":"2027-08-16"}"#],
            ),
            (
                "away from 2 August 2027 to 13 August 2027 (back on 16 August 2027)",
                &[r#"{"first_day":"2027-08-02","last_day":"2027-08-13"}"#],
                &[
                    r#"{"first_day":"2027-08-13","last_day":"2027-08-16"}"#,
                    r#"{"first_day":"2027-08-02","last_day":"2027-08-16"}"#,
                ],
            ),
            (
                "one from 10:00-11:00 and one from 11:00-12:00",
                &[r#"{"start_time":"11:00","end_time":"12:00"}"#, r#"{"start_time":"10:00","end_time":"11:00"}"#],
                &[r#"{"start_time":"10:00","end_time":"12:00"}"#],
            ),
        ],
    );
}

#[test]
fn what_is_read_is_not_where_something_is_written() {
    let post = of(r##"{"channel":{},"to":{},"folder":{}}"##);
    judge(
        &post,
        &[
            (
                "Catch up on #incident-0412 and post a summary in #eng-standup",
                &[r##"{"channel":"#eng-standup"}"##],
                &[r##"{"channel":"#incident-0412"}"##],
            ),
            ("Read #incident-0412 and post a summary there", &[r##"{"channel":"#incident-0412"}"##], &[]),
            (
                "post it in the channel 'general'. Charlie asked for it in 'random'",
                &[r#"{"channel":"general"}"#],
                &[r#"{"channel":"random"}"#],
            ),
            (
                "The mails go to the folder Newsletters. Only what's in the inbox.",
                &[r#"{"folder":"Newsletters"}"#],
                &[r#"{"folder":"inbox"}"#],
            ),
            ("The May invoice of bob@example.org, please forward it to ada@example.org", &[ADA], &[BOB]),
            ("Answer the mail from bob@example.org", &[BOB], &[]),
            ("Answer the mail from bob@example.org and cc ada@example.org", &[BOB, ADA], &[]),
        ],
    );
}

#[test]
fn a_year_of_a_day_is_no_other_number() {
    let book = of(r#"{"train":{},"year":{}}"#);
    let cases: [(&str, &[&str], &[&str]); 1] =
        [("the train 7042 on 26 March 2027", &[r#"{"train":"7042"}"#, r#"{"year":"2027"}"#], &[r#"{"train":"2027"}"#])];
    judge(&book, &cases);
}

#[test]
fn where_something_is_and_a_part_of_an_address_are_not_its_name() {
    let book = of(r#"{"hotel":{},"city":{},"first_name":{},"street":{}}"#);
    judge(
        &book,
        &[
            ("Need a hotel in London", &[r#"{"city":"London"}"#], &[r#"{"hotel":"London"}"#]),
            ("Book the hotel Adlon in London", &[r#"{"hotel":"Adlon"}"#], &[]),
            (
                "my address is 48 Larch Street",
                &[r#"{"street":"48 Larch Street"}"#],
                &[r#"{"first_name":"Larch","street":"48 Larch Street"}"#],
            ),
            (
                "I am Larch and my address is 48 Larch Street",
                &[r#"{"first_name":"Larch","street":"48 Larch Street"}"#],
                &[],
            ),
        ],
    );
}

#[test]
fn an_address_that_was_one_is_no_more() {
    let mail = of(r#"{"to":{}}"#);
    let text = "Write to ada@example.org. Her old address bob@example.org is dead";
    judge(&mail, &[(text, &[ADA], &[BOB]), ("Her old address was bob@example.org", &[BOB], &[])]);
}

#[test]
fn what_is_asked_for_is_not_taken_for_what_is_denied_or_was() {
    let mail = of(r#"{"to":{}}"#);
    for text in [
        "Invoice 5512 isn't paid yet, please forward it to ada@example.org",
        "If you can't reach ada@example.org, try again",
        "I can't come on Friday, please tell ada@example.org",
        "ada@example.org asked for the deck, I don't have it, can you send it to her",
        "Ada is ada@example.org. She can't open the file, so send it as a PDF",
        "My contact there is ada@example.org, don't call her, just write",
        "Send the deck to ada@example.org. No need to copy anyone",
        "Send the deck to ada@example.org, nothing else.",
        "Please reply to ada@example.org that we stay at the Hilton",
        "Write to ada@example.org that I'll take care of the hotel myself",
        "Forward it to ada@example.org, I'll do the rest myself",
        "I haven't told ada@example.org yet, please do that",
        "Move the call with ada@example.org from Friday to Monday",
        "Sag ada@example.org, dass Bob nicht kommt",
        "Kannst du ada@example.org schreiben? Ich schaffe es nicht.",
        "Kannst du ada@example.org einladen oder nicht?",
        "Ada kommt mit, ihre Adresse ist ada@example.org, vergiss das nicht",
        "Écris à ada@example.org, je ne peux pas venir",
        "Scrivi ad ada@example.org, non posso venire",
        "Escribe a ada@example.org, no puedo ir",
        "What did ada@example.org want? Answer her that it's fine, we don't need it",
        "The new address is ada@example.org, the old one no longer works",
        "I previously wrote to bob@example.org, but now send it to ada@example.org",
        "Share it with ada@example.org as editor, she is the owner's assistant",
        "I sent it to ada@example.org yesterday but she didn't get it, send it again",
        "ada@example.org is not on the list yet, please add her",
        "Please add ada@example.org, who isn't in the channel yet",
        "My old boss ada@example.org is in town, invite her",
        "Take the thread from ada@example.org and send her a summary",
        "Check the mail of ada@example.org and tell her we agree",
        "Mail ada@example.org and ask if the room is ready or not",
        "The report is at bob@example.org's, don't wait for it, write to ada@example.org",
        "The rent goes to ada@example.org, don't be late with it",
    ] {
        judge(&mail, &[(text, &[ADA], &[])]);
    }
    let book = of(
        r#"{"start_time":{},"end_time":{},"start_date":{},"end_date":{},"amount":{},"currency":{},"at":{},"date":{},"time":{},"from":{},"to":{},"channel":{},"folder":{}}"#,
    );
    for (text, call) in [
        ("I'm away from 4 to 7 April 2027, back on the 8th", r#"{"start_date":"2027-04-04","end_date":"2027-04-07"}"#),
        ("Move my booking to 4 to 7 April 2027", r#"{"start_date":"2027-04-04","end_date":"2027-04-07"}"#),
        (
            "Change the dates: from 4 April 2027 to 7 April 2027",
            r#"{"start_date":"2027-04-04","end_date":"2027-04-07"}"#,
        ),
        (
            "Please change my hotel so that it is from 4 April 2027 to 7 April 2027",
            r#"{"start_date":"2027-04-04","end_date":"2027-04-07"}"#,
        ),
        ("Room Elbe 10:00 to 12:00, then lunch at 12:00 until 13:00", r#"{"start_time":"12:00","end_time":"13:00"}"#),
        ("Reschedule the sync from 10:00 to 11:00, half an hour", r#"{"start_time":"11:00"}"#),
        ("Block 9:00-17:00 except lunch 12:00-13:00", r#"{"start_time":"09:00","end_time":"17:00"}"#),
        ("I paid 84 euros for dinner and 20 euros for the taxi, ask Bob for both", r#"{"amount":20,"currency":"EUR"}"#),
        ("I paid 84 euros for dinner, ask Bob for 42 euros", r#"{"amount":42,"currency":"EUR"}"#),
        ("She paid 64.90 EUR on the 3rd, refund it", r#"{"amount":64.90,"currency":"EUR"}"#),
        ("I have paid 50 euros of it, send the other 30 euros", r#"{"amount":30,"currency":"EUR"}"#),
        (
            "Transfer 300 euros from Savings to Checking",
            r#"{"amount":300,"currency":"EUR","from":"Savings","to":"Checking"}"#,
        ),
        ("The meeting is currently on Tuesday at 10:00, remind me of it then", r#"{"at":"2026-11-24T10:00"}"#),
        ("The old invoice was 120 euros and still open, pay the 120 euros", r#"{"amount":120,"currency":"EUR"}"#),
        ("Read #ops and #help, then post a summary in #ops", r##"{"channel":"#ops"}"##),
        ("Check #ops and post a summary in it", r##"{"channel":"#ops"}"##),
        ("Summarise #ops in #help", r##"{"channel":"#help"}"##),
        ("Put it in the folder Taxes 2026", r#"{"folder":"Taxes 2026"}"#),
        ("Look through the folder again and move it to Archive", r#"{"folder":"Archive"}"#),
        ("Post it in the channel random please", r#"{"channel":"random"}"#),
        ("Book a flight from Oslo to Bergen, I moved it once already", r#"{"from":"Oslo","to":"Bergen"}"#),
        ("Change my flight from Oslo to Bergen on 5 December 2026 to 6 December 2026", r#"{"date":"2026-12-06"}"#),
        ("Set the alarm from 7:00 to 8:00 please", r#"{"time":"08:00"}"#),
        ("increase the budget from 500 euros to 700 euros", r#"{"amount":700,"currency":"EUR"}"#),
        ("The table is for Friday at 19:00, but move it to 20:00", r#"{"at":"2026-11-27T20:00"}"#),
    ] {
        judge(&book, &[(text, &[call], &[])]);
    }
}
