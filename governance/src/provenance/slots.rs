//! Which argument a value in a text is meant for: what its form, and the words beside it, rule out.
//!
//! A hijacked model may take the right values and put each in the wrong place. What is ruled out here no other rule brings
//! back. A word can also bind a short value, which form alone would not: `says` where it names the argument, `counts` where
//! it names what the argument counts. Both only within a span that vouches.

use std::borrow::Cow;

use super::{
    measures,
    number::Currency,
    text::{weight, words},
    tongues::{FOR, Unit, counter, meaning},
    typed::{Typed, Whole, digest, is_checked, whole},
};
use crate::registry::Tool;

/// How many bytes a word directly beside a value may take.
const NEAR: usize = 64;
/// So many figures without a letter are the number of a telephone, and no name of a person.
const PHONE: usize = 7;
/// How far back a quotation may begin, in bytes.
const QUOTATION: usize = 2048;
/// A shorter word of an argument's name, such as `to` or `at`, stands in too many texts to bind anything.
const BINDS: usize = 4;
/// An argument's name and a word that differs from it by an ending: `class` and `classe`.
const STEM: usize = 5;
/// Words that say that an argument is an amount of money.
const MONEY: [&str; 20] = [
    "amount",
    "price",
    "sum",
    "total",
    "cost",
    "fee",
    "budget",
    "payment",
    "value",
    "limit",
    "money",
    "balance",
    "threshold",
    "betrag",
    "montant",
    "importe",
    "importo",
    "bedrag",
    "kwota",
    "valor",
];
/// Words that say that an argument is the number of a thing.
const IDENTIFIERS: [&str; 16] = [
    "id",
    "ids",
    "uid",
    "uids",
    "gid",
    "gids",
    "iid",
    "iids",
    "guid",
    "uuid",
    "number",
    "no",
    "code",
    "ref",
    "reference",
    "token",
];
/// Words that say that an argument is a person, or several.
const PERSONS: [&str; 14] = [
    "username",
    "mention",
    "handle",
    "user",
    "member",
    "person",
    "people",
    "recipient",
    "assignee",
    "attendee",
    "owner",
    "passenger",
    "guest",
    "participant",
];
/// Words that say that an argument is an account, or whose it is.
const ACCOUNTS: [&str; 8] = ["iban", "account", "acct", "bank", "payee", "beneficiary", "creditor", "debtor"];
/// Words that say that an argument is a place where people talk or things are kept.
const PLACES: [&str; 6] = ["channel", "stream", "room", "topic", "folder", "mailbox"];
/// Words that say that an amount is in the hundredths of a currency.
const MINOR: [&str; 8] = ["cents", "cent", "pence", "minor", "rappen", "centimes", "centavos", "subunits"];
/// Words that say that a number is a moment, in seconds since 1970.
const UNIX: [&str; 4] = ["unix", "epoch", "timestamp", "ts"];
/// Parts of words that say that an argument is, or has in it, a moment or a day; and such words.
const WHEN: [&str; 32] = [
    "date",
    "time",
    "day",
    "when",
    "start",
    "end",
    "begin",
    "from",
    "until",
    "till",
    "due",
    "after",
    "before",
    "since",
    "arriv",
    "depart",
    "check",
    "pick",
    "return",
    "slot",
    "period",
    "interval",
    "window",
    "stay",
    "month",
    "expir",
    "deadline",
    "schedul",
    "effective",
    "execut",
    "moment",
    "hour",
];
const WHEN_WORDS: [&str; 6] = ["at", "on", "by", "to", "value", "text"];
/// So many words are few.
const FEW: usize = 4;
/// The argument that is the first of two names with a stroke between, and the one that is the second.
const HOLDERS: [&str; 9] =
    ["owner", "org", "organization", "organisation", "namespace", "group", "workspace", "account", "user"];
const HELD: [&str; 6] = ["repo", "repository", "project", "name", "slug", "package"];
/// Words of the argument that says when something begins, and of the one that says when it ends.
const STARTS: [&str; 8] = ["start", "begin", "from", "dtstart", "starts", "begins", "checkin", "pickup"];
const ENDS: [&str; 10] = ["end", "until", "to", "dtend", "ends", "till", "checkout", "finish", "dropoff", "return"];
/// The argument of a pair that names what the other, `value`, is given to.
const KEYS: [&str; 4] = ["name", "key", "field", "setting"];

/// One of two names with a stroke between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathPart {
    Holder,
    Held,
}

/// Where a value goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sink<'a> {
    pub(super) tool: &'a Tool,
    pub(super) argument: &'a str,
    /// The key right around the value, where that is another.
    pub(super) key: &'a str,
}

impl Sink<'_> {
    /// Whether `entry` of a declaration names this argument: `argument` or `tool.argument`.
    pub(super) fn is(&self, entry: &str) -> bool {
        let tool = entry.strip_suffix(self.argument).and_then(|rest| rest.strip_suffix('.'));
        entry == self.argument || tool == Some(self.tool.registration().name.as_str())
    }

    /// Whether `word`, folded, is a word of the argument's name.
    pub(super) fn says(&self, word: &str) -> bool {
        let word = singular(word);
        !word.is_empty() && self.name().any(|own| alike(singular(&own), word))
    }

    pub(super) fn is_money(&self) -> bool {
        (self.is_one_of(&MONEY) || self.currency().is_some()) && !self.is_of_a_way_to_pay()
    }

    /// Whether the argument is the sign of something, whatever that is for: the id of a payment method.
    fn is_of_a_way_to_pay(&self) -> bool {
        name_words(self.key).last().is_some_and(|last| matches!(&*last, "id" | "ids" | "uid" | "token"))
    }

    /// Whether what the schema says of the argument is little more than a currency: `EUR per day`.
    pub(super) fn is_described_in_money(&self) -> bool {
        let words = self.tool.property(self.key).map_or("", |property| &property.words);
        let mut words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let first = words.next().is_some_and(|word| word.len() == 3 && Currency::parse(word).is_some());
        first && words.take(FEW).count() < FEW && !self.is_identifier()
    }

    /// Whether the value at `text[start..end]` is where something goes and the argument where it comes from, or the other
    /// way round: from York to Whitby.
    pub(super) fn is_crossed(&self, text: &str, start: usize, end: usize) -> bool {
        const SOURCES: [&str; 3] = ["from", "origin", "source"];
        const GOALS: [&str; 3] = ["to", "destination", "target"];
        const FROM: [&str; 7] = ["from", "von", "vom", "van", "desde", "da", "z"];
        const TO: [&str; 7] = ["to", "into", "nach", "naar", "hasta", "à", "do"];
        let is = |list: &[&str]| name_words(self.key).next().is_some_and(|own| list.contains(&&*own));
        let (source, goal) = (is(&SOURCES), is(&GOALS));
        if !source && !goal {
            return false;
        }
        let from = text.floor_char_boundary(start.saturating_sub(NEAR));
        let to = text.floor_char_boundary(end.saturating_add(NEAR));
        let before: Vec<&str> =
            text.get(from..start).map_or_else(Vec::new, |text| words(text).map(|word| word.core).collect());
        let mut after = text.get(end..to).into_iter().flat_map(words).map(|word| word.core);
        match before.last() {
            Some(last) if goal && FROM.contains(last) => after.take(FEW).any(|word| TO.contains(&word)),
            Some(last) if source && TO.contains(last) => {
                before.iter().rev().skip(1).take(FEW).any(|word| FROM.contains(word))
                    || after.next().is_some_and(|word| FROM.contains(&word))
            }
            _ => false,
        }
    }

    /// The currency that the argument's name says its amount is in.
    pub(super) fn currency(&self) -> Option<Currency> {
        // Pounds may be a weight.
        let named =
            |own: &str| own.len() == 3 || matches!(own, "euro" | "euros" | "dollar" | "dollars" | "franken" | "francs");
        self.name().find_map(|own| if named(&own) { Currency::parse(&own) } else { None })
    }

    /// Whether a sentence has the beginning of a word of the argument's name: pick us up, of a pickup.
    pub(super) fn is_named_in(&self, sentence: &str) -> bool {
        let named = |own: &str, word: &str| word.len() >= BINDS && (own.starts_with(word) || word.starts_with(own));
        self.name().filter(|own| own.len() >= BINDS).any(|own| words(sentence).any(|word| named(&own, word.core)))
    }

    /// Whether another argument's name and this one's have a word in common.
    pub(super) fn is_called(&self, key: &str) -> bool {
        name_words(self.key).any(|own| name_words(key).any(|other| own == other))
    }

    /// The words that name the argument and its tool, as digests: what everything in a list for it is.
    pub(super) fn kind(&self) -> Vec<u64> {
        let names = self.name().chain(name_words(self.tool.registration().name.as_str()));
        names.map(|own| digest(singular(&own))).collect()
    }

    /// How well a key of a record goes with the argument: how many words of its name it has, and whether it is of a person
    /// as the argument is.
    pub(super) fn shares(&self, key: &str) -> usize {
        let shared =
            name_words(key).filter(|word| name_words(self.key).any(|own| alike(singular(&own), singular(word))));
        match (Self::is_of_persons(self.key), Self::is_of_persons(key)) {
            (true, true) => shared.count().saturating_add(1),
            (false, true) => shared.count().saturating_sub(1),
            _ => shared.count(),
        }
    }

    /// Whether a name is that of a person.
    pub(super) fn is_of_persons(name: &str) -> bool {
        const OTHERS: [&str; 6] = ["author", "sender", "creator", "organizer", "reporter", "customer"];
        name_words(name).any(|own| PERSONS.contains(&singular(&own)) || OTHERS.contains(&singular(&own)))
    }

    /// Whether a key says no more than that its value is the sign of a record.
    pub(super) fn is_a_sign(key: &str) -> bool {
        name_words(key).all(|own| matches!(&*own, "id" | "uid" | "gid" | "uuid" | "guid")) && !key.is_empty()
    }

    /// Whether the argument is whereto something goes, or wherefrom, by its own name.
    pub(super) fn goes(&self) -> Option<bool> {
        let has = |list: &[&str]| name_words(self.argument).any(|own| list.contains(&&*own));
        let from = has(&["from", "source", "debit", "debtor", "origin"]);
        let to = has(&["to", "target", "dest", "destination", "credit", "creditor", "into"]);
        (from != to).then_some(to)
    }

    /// The words of the tool's name that say what it does, and no argument's name has.
    pub(super) fn does(&self) -> Vec<u64> {
        const ANY: [&str; 16] = [
            "get", "list", "set", "create", "add", "update", "send", "make", "new", "from", "to", "into", "in", "for",
            "of", "by",
        ];
        let named = |word: &str| self.tool.critical().any(|name| name_words(name).any(|own| alike(&own, word)));
        let words = name_words(self.tool.registration().name.as_str());
        words.filter(|word| !ANY.contains(&&**word) && !named(word)).map(|word| digest(&word)).collect()
    }

    /// Whether a key says that its value is the name of a record and the argument is a sum, or the other way round.
    pub(super) fn is_of_another_kind(&self, key: &str) -> bool {
        let names = Self::names_a_record(key);
        let sums = name_words(key).any(|own| MONEY.contains(&&*own));
        self.shares(key) == 0 && ((names && self.is_money()) || (sums && self.is_identifier()))
    }

    /// Whether a key is that of the name of a record.
    pub(super) fn names_a_record(key: &str) -> bool {
        name_words(key).last().is_some_and(|last| IDENTIFIERS.contains(&&*last))
    }

    /// Whether the argument is the day on which a sum is paid.
    pub(super) fn is_day_of_payment(&self) -> bool {
        const DAYS: [&str; 7] = ["date", "execution", "value", "payment", "transfer", "on", "transaction"];
        let mut own = name_words(self.key);
        name_words(self.key).any(|own| own == "date") && own.all(|own| DAYS.contains(&&*own))
    }

    /// Whether the argument is whom something goes to, or who takes part.
    pub(super) fn is_for_persons(&self) -> bool {
        names_persons(self.key) || name_words(self.key).any(|own| matches!(&*own, "cc" | "bcc"))
    }

    /// Whether the argument is a text that is read by people.
    pub(super) fn is_wording(&self) -> bool {
        const WORDING: [&str; 8] = ["text", "message", "content", "body", "title", "topic", "question", "subject"];
        WORDING.contains(&self.key)
    }

    /// Whether a number between these two words counts what this argument counts.
    pub(super) fn counts(&self, before: &str, after: &str) -> bool {
        let Some(wanted) = self.counter() else { return false };
        let people = wanted.is(Unit::Person) && FOR.contains(&before) && meaning(after).unit.is_none();
        people || meaning(after).unit.is_some_and(|unit| unit.is(wanted))
    }

    /// Whether the amount is in the hundredths of its currency, by the argument's name or what the schema says of it.
    pub(super) fn is_minor(&self) -> bool {
        name_words(self.key).any(|own| MINOR.contains(&&*own)) || self.is_described_minor()
    }

    /// Whether the schema says so: in cents, and neither per cent nor not in cents.
    fn is_described_minor(&self) -> bool {
        let property = self.tool.property(self.key);
        let said: Vec<&str> =
            property.map_or("", |property| &property.words).split(|c: char| !c.is_alphanumeric()).collect();
        let denied = |at: usize| said.iter().take(at).rev().take(2).any(|word| matches!(*word, "not" | "per" | "no"));
        said.iter().enumerate().any(|(at, word)| MINOR.contains(word) && !denied(at))
    }

    /// What the number is in seconds since 1970, if the argument takes a moment in such.
    pub(super) fn unix(&self, number: i128) -> Option<i64> {
        let named = name_words(self.key).any(|own| UNIX.contains(&&*own));
        if !(named || self.described(|word| UNIX.contains(&word))) {
            return None;
        }
        let thousandths = self.described(|word| word == "ms" || word.starts_with("millisecond"));
        i64::try_from(if thousandths { number.checked_div(1000)? } else { number }).ok()
    }

    /// Whether the argument is a part of a link, by what the schema says of it.
    pub(super) fn is_of_a_link(&self) -> bool {
        self.described(|word| matches!(word, "link" | "url" | "permalink"))
    }

    /// The texts that the schema lists for the argument.
    pub(super) fn options(&self) -> &[String] {
        self.tool.property(self.key).map_or(&[], |property| &property.options)
    }

    /// Whether the argument is the number or the name of a record.
    pub(super) fn is_identifier(&self) -> bool {
        name_words(self.key).last().is_some_and(|last| IDENTIFIERS.contains(&&*last))
    }

    /// Which of two names with a stroke between a key asks for.
    pub(super) fn part_of_a_path(key: &str) -> Option<PathPart> {
        let last = name_words(key).last()?;
        let is = |list: &[&str]| list.contains(&&*last);
        is(&HOLDERS).then_some(PathPart::Holder).or_else(|| is(&HELD).then_some(PathPart::Held))
    }

    /// Which dimension the argument asks for, by its key.
    pub(super) fn dimension(&self) -> Option<usize> {
        name_words(self.key).find_map(|own| measures::dimension(&own))
    }

    /// The unit that the key of the argument ends with.
    pub(super) fn measure(&self) -> Option<usize> {
        name_words(self.key).last().and_then(|own| measures::measure(&own))
    }

    pub(super) fn is_place(&self) -> bool {
        self.is_one_of(&PLACES)
    }

    /// Whether an amount is meant once for each.
    pub(super) fn is_each(&self) -> bool {
        self.name().any(|own| own == "each" || own == "per")
    }

    /// Whether the argument says how long before something.
    pub(super) fn is_lead(&self) -> bool {
        const LEADS: [&str; 10] =
            ["remind", "alarm", "alert", "before", "lead", "notif", "advance", "erinner", "rappel", "recordat"];
        self.name().any(|own| LEADS.iter().any(|part| own.contains(part)))
    }

    pub(super) fn is_start(&self) -> bool {
        let has = |wanted: &str| self.name().any(|own| own == wanted);
        self.name().any(|own| STARTS.contains(&&*own)) || (has("check") && has("in")) || (has("first") && has("day"))
    }

    /// Whether the argument says when something begins, also in two words.
    pub(super) fn opens(&self) -> bool {
        self.is_start() || self.name().any(|own| own.starts_with("arriv"))
    }

    pub(super) fn is_end(&self) -> bool {
        let has = |wanted: &str| self.name().any(|own| own == wanted);
        let ends = (has("check") && has("out")) || (has("last") && has("day"));
        !self.is_start() && (self.name().any(|own| ENDS.contains(&&*own)) || ends)
    }

    /// What one of the things that the argument counts is, if it counts any.
    pub(super) fn counts_in(&self) -> Option<Unit> {
        let described = || {
            let words = self.tool.property(self.key).map_or("", |property| &property.words);
            words.split(|c: char| !c.is_alphanumeric()).find_map(counter)
        };
        self.counter().or_else(described)
    }

    /// Whether a value of this form cannot be meant even if a list that is declared for the argument has it: such a list
    /// has more in it than what it is declared for.
    pub(super) fn is_unfit(&self, value: &str) -> bool {
        let figures = value.chars().filter(char::is_ascii_digit).count();
        let path = || value.contains('/') || value.rsplit_once('.').is_some_and(|(_, kind)| is_kind(kind));
        (value.starts_with('@') && self.is_place())
            || (value.contains(' ') && figures == 0 && self.is_identifier())
            || (name_words(self.key).any(|own| own == "path") && !path())
            || (is_a_time(value) && !self.may_be_when())
    }

    /// Whether a value is the number of a telephone, and the argument a person.
    pub(super) fn is_telephone(&self, value: &str) -> bool {
        let figures = value.chars().filter(char::is_ascii_digit).count();
        let phone = figures >= PHONE && !value.contains(char::is_alphabetic) && !value.contains('@');
        phone && self.is_someone() && !self.is_identifier()
    }

    /// Whether the value itself is a person, whatever its argument counts.
    pub(super) fn is_someone(&self) -> bool {
        name_words(self.key).any(|own| PERSONS.contains(&singular(&own)))
    }

    /// Whether the value is whom something is for, by its own key alone.
    pub(super) fn is_for_someone(&self) -> bool {
        const FOR_WHOM: [&str; 8] = ["to", "payee", "beneficiary", "creditor", "receiver", "name", "contact", "email"];
        const FROM_WHOM: [&str; 4] = ["debtor", "from", "source", "sender"];
        let has = |list: &[&str]| name_words(self.key).any(|own| list.contains(&singular(&own)));
        (has(&FOR_WHOM) || has(&PERSONS)) && !has(&FROM_WHOM)
    }

    /// Whether the argument is from where something goes, or what was so before.
    pub(super) fn is_of_before(&self) -> bool {
        const BEFORE: [&str; 14] = [
            "from",
            "source",
            "src",
            "origin",
            "old",
            "current",
            "previous",
            "original",
            "former",
            "sender",
            "debtor",
            "departure",
            "von",
            "depuis",
        ];
        const UNDOES: [&str; 5] = ["remov", "delet", "cancel", "revok", "leave"];
        const AFTER: [&str; 5] = ["to", "new", "target", "dest", "destination"];
        let tool = self.tool.registration().name.as_str();
        let after = |name: &str| name_words(name).any(|own| AFTER.contains(&&*own));
        // Of a date and a new date, the first is of before.
        let other = |other: &str| other != self.argument && after(other) && self.is_called(other);
        self.name().any(|own| BEFORE.contains(&&*own))
            || name_words(tool).any(|own| UNDOES.iter().any(|part| own.starts_with(part)))
            || (!after(self.argument) && self.tool.critical().any(other))
    }

    pub(super) fn may_be_when(&self) -> bool {
        self.name().any(|own| WHEN_WORDS.contains(&&*own) || WHEN.iter().any(|part| own.contains(part)))
    }

    /// Whether a word of what the schema says of the argument fits.
    fn described(&self, fits: impl Fn(&str) -> bool) -> bool {
        let property = self.tool.property(self.key);
        property.is_some_and(|property| property.words.split(|c: char| !c.is_alphanumeric()).any(fits))
    }

    /// Whether the argument cannot be what a value of this form is: a day is not the number of a thing.
    pub(super) fn rules_out(&self, value: &str) -> bool {
        let iban = self.is_one_of(&["iban"]);
        // An address is only ruled out where a number of an account is asked for.
        if value.contains('@') && !value.starts_with('#') && !is_file(value) {
            return iban;
        }
        let (numbers, person) = (self.is_identifier(), self.is_person());
        ((numbers || person || iban) && (is_file(value) || is_when(value)))
            || (person && value.starts_with('#'))
            || (numbers && !self.is_one_of(&ACCOUNTS) && is_checked(value))
            || (iban && !is_iban(value))
    }

    /// Whether the value at `text[start..end]` is meant for another argument of the same call. `sourced` is whether a tool
    /// has answered that is declared to know what this argument may be.
    pub(super) fn is_not_for(&self, text: &str, start: usize, end: usize, sourced: bool) -> bool {
        let [before, after] = beside(text, start, end);
        if self.says(before) || self.says(after) {
            return false;
        }
        // Of a name and a value, and of a place and what is said there, a quotation is the latter.
        let pair = KEYS.contains(&self.argument) && self.tool.names("value");
        let phrase = sourced && text.get(start..end).is_some_and(|value| value.contains(' '));
        let spaced = self.is_place() && text.get(start..end).is_some_and(|value| value.contains(' '));
        let quotation = is_a_quotation(text, start, end);
        let quoted = (pair || phrase || spaced && !self.is_wording()) && quotation;
        // Of a text that quotes something, the quotation is what is to be said.
        let quoted = quoted || (self.is_wording() && !quotation && has_a_quotation(text));
        // Whoever writes one person with a sign writes all so.
        let unsigned = self.is_person() && !text.get(start..).is_some_and(|value| value.starts_with('@'));
        let signed = || text.starts_with('@') || text.contains(" @");
        quoted
            || (unsigned && !text.get(start..end).is_some_and(|value| value.contains('@')) && signed())
            || (self.is_for_another(before) && !ends_a_clause(text, start))
    }

    /// Whether `word` names another argument that matters.
    fn is_for_another(&self, word: &str) -> bool {
        let word = singular(word);
        let another = |name: &str| name != self.argument && name_words(name).any(|own| singular(&own) == word);
        word.chars().count() >= BINDS && self.tool.critical().any(another)
    }

    fn is_person(&self) -> bool {
        self.is_one_of(&PERSONS) && self.counter().is_none()
    }

    fn counter(&self) -> Option<Unit> {
        const HOW_MANY: [&str; 5] = ["count", "number", "num", "size", "quantity"];
        let counts = || name_words(self.key).any(|own| HOW_MANY.contains(&&*own));
        if name_words(self.key).any(|own| PERSONS.contains(&singular(&own))) && counts() {
            return Some(Unit::Person);
        }
        name_words(self.key).chain(name_words(self.argument)).find_map(|own| counter(&own))
    }

    fn is_one_of(&self, list: &[&str]) -> bool {
        self.name().any(|own| list.contains(&&*own) || list.contains(&singular(&own)))
    }

    fn name(&self) -> impl Iterator<Item = Cow<'_, str>> {
        name_words(self.argument).chain(name_words(self.key))
    }
}

/// Whether the value at the byte `start` is only the end of what a text gives for a name: the 4471 of `plate is KI-RB 4471`.
pub(super) fn is_the_rest(sink: &Sink<'_>, text: &str, start: usize) -> bool {
    const GIVES: [&str; 9] = ["is", "are", "ist", "est", "es", "è", "é", "jest", "="];
    let from = text.floor_char_boundary(start.saturating_sub(NEAR));
    let before: Vec<&str> =
        text.get(from..start).map(|text| words(text).map(|word| word.core).collect()).unwrap_or_default();
    let [.., name, gives, first] = &*before else { return false };
    let code = first.contains('-') || first.contains(|c: char| c.is_ascii_digit());
    code && GIVES.contains(gives) && sink.says(name) && !ends_a_clause(text, start)
}

/// Whether a clause ends right before the byte `start`.
fn ends_a_clause(text: &str, start: usize) -> bool {
    text.get(..start).is_some_and(|before| before.trim_end().ends_with([',', ';', '.', '!', '?']))
}

/// The words directly before and after `text[start..end]`; empty where there is none nearby.
pub(super) fn beside(text: &str, start: usize, end: usize) -> [&str; 2] {
    let from = text.floor_char_boundary(start.saturating_sub(NEAR));
    let to = text.floor_char_boundary(end.saturating_add(NEAR));
    let before = text.get(from..start).and_then(|text| words(text).last());
    let after = text.get(end..to).and_then(|text| words(text).next());
    [before, after].map(|word| word.map_or("", |word| word.core))
}

/// Whether `text[start..end]` is a piece of a quotation and not all of it: its sense may be another.
pub(super) fn cuts_a_quotation(text: &str, start: usize, end: usize) -> bool {
    let from = text.floor_char_boundary(start.saturating_sub(QUOTATION));
    let (Some(before), Some(after)) = (text.get(from..start), text.get(end..)) else { return true };
    let straight = before.matches('"').count() % 2 == 1;
    let curly = before.rfind(['“', '„']) > before.rfind('”');
    let angular = before.rfind('«') > before.rfind('»') || before.rfind('「') > before.rfind('」');
    let from_here = text.get(from..).unwrap_or_default();
    let closes = || after.match_indices(['\'', '’']).any(|(at, _)| !after.get(at..).is_some_and(opens_a_word));
    let curly = curly || angular || (single(from_here, start.saturating_sub(from)).0 && closes());
    let whole = before.trim_end().ends_with(['"', '“', '„', '«', '「', '\'', '‘'])
        && after.trim_start_matches(['.', ',', '!', '?', ';', ' ']).starts_with(['"', '”', '“', '»', '」', '\'', '’']);
    (straight || curly) && !whole
}

/// Whether a link goes on behind `end`, with a sign that is the end of other words.
pub(super) fn cuts_a_link(text: &str, value: &str, end: usize) -> bool {
    let mut rest = text.get(end..).unwrap_or_default().chars();
    let goes_on = rest.next().is_some_and(|c| matches!(c, ',' | ';' | '(' | '[' | '{' | '\'' | '!' | ':'));
    value.contains("://") && goes_on && rest.next().is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '-' | '_'))
}

/// Whether a text has a quotation of several words.
fn has_a_quotation(text: &str) -> bool {
    const PAIRS: [(char, char); 5] = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」')];
    PAIRS.iter().any(|(open, close)| {
        let quoted = text.split_once(*open).and_then(|(_, rest)| rest.split_once(*close));
        quoted.is_some_and(|(quoted, _)| weight(quoted) >= BINDS)
    }) || single(text, text.len()).1
}

/// Whether a text begins with a sign and goes on with a letter, as the end of `Anna's` does.
fn opens_a_word(text: &str) -> bool {
    text.chars().nth(1).is_some_and(char::is_alphanumeric)
}

/// Whether a quotation in single quotes is open at the byte `at`, and whether there was one before.
fn single(text: &str, at: usize) -> (bool, bool) {
    let (mut open, mut any, mut last) = (false, false, ' ');
    let mut rest = text.char_indices().take_while(|(place, _)| *place < at).peekable();
    while let Some((_, c)) = rest.next() {
        let next = rest.peek().map_or(' ', |(_, next)| *next);
        if matches!(c, '\'' | '‘' | '’') {
            if open && !next.is_alphanumeric() {
                (open, any) = (false, true);
            } else if !last.is_alphanumeric() && next.is_alphanumeric() {
                open = true;
            }
        }
        last = c;
    }
    (open, any)
}

/// Whether `text[start..end]` is all of a quotation.
fn is_a_quotation(text: &str, start: usize, end: usize) -> bool {
    let (Some(before), Some(after)) = (text.get(..start), text.get(end..)) else { return false };
    let (before, after) = (before.trim_end(), after.trim_start_matches(['.', ',', '!', '?', ';', ' ']));
    before.ends_with(['"', '\'', '“', '„', '‘', '’', '«', '「', '『'])
        && after.starts_with(['"', '\'', '”', '“', '’', '‘', '»', '」', '』'])
}

/// Whether a value is a day, a time or a moment.
pub(super) fn is_when(value: &str) -> bool {
    let when = |way: Whole| matches!(way, Whole::Moment(..) | Whole::One(Typed::Date(_) | Typed::Time(_)));
    whole(value).into_iter().any(when)
}

/// Whether a value is a time of day, with its day or alone.
fn is_a_time(value: &str) -> bool {
    let time = |way: Whole| matches!(way, Whole::Moment(..) | Whole::One(Typed::Time(_)));
    let may_be = value.contains(':') || ["am", "pm", "noon", "midnight"].iter().any(|end| value.ends_with(end));
    may_be && whole(value).into_iter().any(time)
}

/// Whether it is the ending of a name of a file.
fn is_kind(kind: &str) -> bool {
    (1..=5).contains(&kind.len()) && kind.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Whether an entry of a declaration names people.
pub(super) fn names_persons(entry: &str) -> bool {
    let last = entry.rsplit('.').next().unwrap_or(entry);
    let persons = |own: Cow<'_, str>| PERSONS.contains(&singular(&own)) || matches!(singular(&own), "to" | "invitee");
    name_words(last).any(persons)
}

/// Whether a value is the name of a file.
fn is_file(value: &str) -> bool {
    let known =
        ["pdf", "doc", "docx", "xls", "xlsx", "csv", "txt", "md", "png", "jpg", "jpeg", "ics", "eml", "zip", "odt"];
    !value.contains(' ') && value.rsplit_once('.').is_some_and(|(stem, kind)| !stem.is_empty() && known.contains(&kind))
}

/// Whether a value has the form of ISO 13616: a country, two check digits, and 11 to 30 letters and figures.
fn is_iban(value: &str) -> bool {
    let plain: Vec<char> = value.chars().filter(|c| *c != ' ').collect();
    (15..=34).contains(&plain.len())
        && plain.iter().all(char::is_ascii_alphanumeric)
        && plain.iter().take(2).all(char::is_ascii_alphabetic)
        && plain.iter().skip(2).take(2).all(char::is_ascii_digit)
}

/// The words of a name such as `event_id` or `eventId`, in lower case.
pub(super) fn name_words(name: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let plain = !name.contains(char::is_uppercase);
    let borrowed = plain.then(|| name.split(|c: char| !c.is_alphanumeric()).map(Cow::Borrowed));
    let made = (!plain).then(|| camel_words(name).into_iter().map(Cow::Owned));
    borrowed.into_iter().flatten().chain(made.into_iter().flatten()).filter(|word| !word.is_empty())
}

fn camel_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    words
}

pub(super) fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|rest| !rest.is_empty() && !rest.ends_with('s')).unwrap_or(word)
}

/// Whether two words are one, but for an ending of at most two letters, and for a c that others write as a k.
fn alike(one: &str, other: &str) -> bool {
    let cognate = |word: &str| word.replace('k', "c");
    let (one, other) = (&*cognate(one), &*cognate(other));
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let stem = short.chars().count() >= STEM && long.strip_prefix(short).is_some_and(|end| end.chars().count() <= 2);
    one == other || stem
}
