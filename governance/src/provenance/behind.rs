//! What a text says of something behind it: that it is not meant, stays as it is, can wait, or is done by oneself. Also by a
//! word that points back to it.

use super::clauses::{Clause, Clauses};

/// Open a clause and say nothing of it.
const HEADS: [&str; 30] = [
    "so",
    "and",
    "but",
    "please",
    "pls",
    "just",
    "also",
    "und",
    "aber",
    "bitte",
    "donc",
    "et",
    "mais",
    "alors",
    "quindi",
    "e",
    "ma",
    "pero",
    "y",
    "así",
    "que",
    "entonces",
    "então",
    "dus",
    "en",
    "maar",
    "więc",
    "ale",
    "deshalb",
    "obviously",
];
/// Close it so.
const TAILS: [&str; 26] = [
    "please",
    "pls",
    "bitte",
    "again",
    "anymore",
    "either",
    "though",
    "then",
    "now",
    "thx",
    "thanks",
    "obviously",
    "wieder",
    "plus",
    "più",
    "anyway",
    "svp",
    "per",
    "favore",
    "por",
    "favor",
    "alstublieft",
    "proszę",
    "today",
    "yet",
    "really",
];
/// Say in such a place that what comes follows from what came.
const SO: [&str; 11] = ["so", "also", "deshalb", "donc", "alors", "quindi", "así", "entonces", "então", "dus", "więc"];
/// Deny what stands around them.
const NOT: [&str; 33] = [
    "not",
    "isn't",
    "isnt",
    "aren't",
    "arent",
    "doesn't",
    "doesnt",
    "don't",
    "dont",
    "won't",
    "wont",
    "can't",
    "cant",
    "cannot",
    "needn't",
    "wasn't",
    "shouldn't",
    "mustn't",
    "nicht",
    "pas",
    "niet",
    "nie",
    "non",
    "não",
    "no",
    "kein",
    "keine",
    "keinen",
    "geen",
    "aucun",
    "nessun",
    "ningún",
    "nenhum",
];
/// Of these, those that end a clause and deny it.
const NOT_AT_ITS_END: [&str; 18] = [
    "not", "isn't", "isnt", "aren't", "arent", "doesn't", "doesnt", "won't", "wont", "can't", "cant", "cannot",
    "nicht", "pas", "niet", "nie", "non", "não",
];
/// With such a word before it, it does not: or not, not yet, why not.
const NO_END: [&str; 27] = [
    "or",
    "oder",
    "ou",
    "o",
    "of",
    "lub",
    "czy",
    "if",
    "why",
    "noch",
    "nog",
    "jeszcze",
    "ancora",
    "think",
    "hope",
    "guess",
    "wenn",
    "falls",
    "si",
    "se",
    "warum",
    "pourquoi",
    "perché",
    "waarom",
    "dlaczego",
    "did",
    "certainly",
];
/// Need, come, be asked: of whom it is denied is left out.
const TAKES_PART: [&str; 62] = [
    "need",
    "needed",
    "come",
    "coming",
    "join",
    "joining",
    "attend",
    "attending",
    "invited",
    "ready",
    "involved",
    "included",
    "concerned",
    "required",
    "wanted",
    "make",
    "mehr",
    "nötig",
    "eingeladen",
    "dabei",
    "einladen",
    "ein",
    "mit",
    "dazu",
    "kommen",
    "besoin",
    "prêt",
    "prête",
    "concerné",
    "concernée",
    "invité",
    "invitée",
    "viene",
    "vienen",
    "vengono",
    "va",
    "van",
    "necesita",
    "necesitan",
    "hace",
    "serve",
    "servono",
    "deve",
    "bisogno",
    "vem",
    "vêm",
    "precisa",
    "precisam",
    "vai",
    "mee",
    "nodig",
    "meer",
    "komen",
    "przyjdzie",
    "przyjdą",
    "potrzebuje",
    "musi",
    "idzie",
    "uczestniczy",
    "teilnehmen",
    "vient",
    "viennent",
];
/// Say that something stays as it is, where the clause ends or goes on as in `STAYS_AS`.
const STAYS: [&str; 22] = [
    "stays",
    "stay",
    "remains",
    "remain",
    "bleibt",
    "bleiben",
    "reste",
    "restent",
    "resta",
    "restano",
    "rimane",
    "rimangono",
    "queda",
    "quedan",
    "permanece",
    "fica",
    "ficam",
    "blijft",
    "blijven",
    "zostaje",
    "zostają",
    "pozostaje",
];
const STAYS_AS: [&str; 26] = [
    "as",
    "where",
    "put",
    "unchanged",
    "untouched",
    "the",
    "there",
    "so",
    "wie",
    "da",
    "wo",
    "stehen",
    "bestehen",
    "comme",
    "tel",
    "telle",
    "come",
    "così",
    "como",
    "igual",
    "así",
    "zoals",
    "hoe",
    "waar",
    "jak",
    "tak",
];
/// Say before `WAIT` that there is time.
const CAN: [&str; 9] = ["can", "kann", "können", "peut", "può", "puede", "pode", "kan", "może"];
const WAIT: [&str; 8] = ["wait", "warten", "attendre", "aspettare", "esperar", "wachten", "poczekać", "zaczekać"];
/// Whoever speaks, and that nobody else does it.
const I: [&str; 14] = ["i", "i'll", "ill", "i'm", "i've", "ich", "je", "j'ai", "io", "yo", "eu", "ik", "ja", "il"];
const MYSELF: [&str; 13] = [
    "myself",
    "selbst",
    "selber",
    "moi-même",
    "stesso",
    "stessa",
    "mismo",
    "misma",
    "mesmo",
    "mesma",
    "zelf",
    "sam",
    "sama",
];
const MINE: [&[&str]; 10] = [
    &["m'en", "occupe"],
    &["m'en", "charge"],
    &["kümmere", "mich"],
    &["ci", "penso"],
    &["me", "encargo"],
    &["me", "ocupo"],
    &["trato", "disso"],
    &["zajmę", "się"],
    &["i'll", "take", "care", "of"],
    &["i'll", "handle"],
];
/// Point back to what was spoken of.
const BACK: [&str; 67] = [
    "it", "that", "them", "him", "her", "there", "those", "these", "she", "he", "they", "this", "one", "das", "den",
    "die", "der", "ihn", "sie", "es", "ihm", "ihr", "dort", "dorthin", "darum", "ça", "cela", "le", "la", "les", "lui",
    "elle", "elles", "ils", "leur", "m'en", "ci", "lo", "li", "esso", "essa", "lei", "loro", "ella", "ellos", "él",
    "eso", "disso", "isso", "ela", "ele", "eles", "het", "dat", "die", "hem", "haar", "hen", "ze", "hij", "zij", "to",
    "ten", "tym", "jego", "ją", "nim",
];
/// Bid somebody leave something.
const IGNORE: [&str; 30] = [
    "ignore",
    "skip",
    "forget",
    "disregard",
    "leave",
    "drop",
    "scrap",
    "ignorier",
    "ignoriere",
    "vergiss",
    "lass",
    "lasst",
    "oublie",
    "oubliez",
    "laisse",
    "laissez",
    "ignora",
    "lascia",
    "olvida",
    "deja",
    "esquece",
    "deixa",
    "negeer",
    "vergeet",
    "laat",
    "zostaw",
    "pomiń",
    "ignoruj",
    "keep",
    "dimentica",
];
const ALREADY_BACK: [&str; 8] =
    ["olvídalo", "olvídala", "déjalo", "déjala", "lascialo", "lasciala", "laisse-le", "laisse-la"];
/// Stand behind that: leave him as he is.
const AS_IS: [&str; 12] =
    ["as", "so", "alone", "out", "be", "wie", "comme", "come", "como", "zoals", "jak", "tranquille"];
/// What one is told not to do with what is meant: miss the flight, lose the ticket.
const NO_ACT: [&str; 13] = [
    "miss", "lose", "forget", "split", "delay", "open", "verpass", "vergiss", "verlier", "rate", "oublie", "late",
    "wait",
];
/// Describe: a clause with one of these tells of something, and asks for nothing.
const TELLS_OF: [&str; 45] = [
    "is", "are", "was", "were", "has", "had", "have", "gets", "get", "been", "ist", "sind", "war", "waren", "hat",
    "hatte", "bekommt", "est", "sont", "était", "etait", "a", "avait", "è", "sono", "era", "ha", "aveva", "es", "son",
    "está", "están", "fue", "tiene", "é", "são", "tem", "foi", "zijn", "heeft", "jest", "są", "był", "była", "ma",
];
/// Not if such a word is before: check whether it is.
const OF_ANOTHER: [&str; 12] =
    ["who", "which", "that", "if", "whether", "where", "when", "ob", "wenn", "si", "se", "jeśli"];
/// Begin what is spoken of.
const ARTICLES: [&str; 34] = [
    "the", "le", "la", "les", "der", "die", "das", "den", "il", "lo", "el", "los", "las", "os", "as", "het", "de",
    "mon", "ma", "my", "his", "her", "their", "our", "mein", "meine", "mi", "mio", "mia", "meu", "minha", "mijn",
    "l'autre", "last",
];
/// Begin what is asked for.
const ASKS: [&str; 17] = [
    "please",
    "pls",
    "can",
    "could",
    "would",
    "will",
    "bitte",
    "kannst",
    "könntest",
    "peux-tu",
    "pouvez-vous",
    "puoi",
    "puedes",
    "pode",
    "kun",
    "możesz",
    "proszę",
];
/// Tell somebody something: what comes is no longer about whom.
const TELLS: [&str; 41] = [
    "tell",
    "write",
    "let",
    "remind",
    "ask",
    "answer",
    "inform",
    "message",
    "email",
    "mail",
    "text",
    "reply",
    "ping",
    "dm",
    "say",
    "sag",
    "sage",
    "schreib",
    "schreibe",
    "frag",
    "frage",
    "erinnere",
    "antworte",
    "informiere",
    "dis",
    "écris",
    "demande",
    "rappelle",
    "réponds",
    "préviens",
    "di",
    "scrivi",
    "chiedi",
    "ricorda",
    "avisa",
    "dile",
    "diz",
    "avise",
    "zeg",
    "schrijf",
    "napisz",
];
/// Set what follows apart from what was before it in a clause.
const APART: [&str; 21] = [
    "that", "dass", "daß", "que", "che", "dat", "że", "because", "weil", "denn", "since", "as", "if", "whether",
    "wenn", "parce", "car", "perché", "porque", "omdat", "bo",
];
/// Nothing, for whom or where.
const NOTHING: [&str; 7] = ["nothing", "nichts", "rien", "niente", "nada", "niets", "nic"];
const FOR_WHOM: [&str; 24] = [
    "into", "onto", "to", "in", "for", "an", "für", "nach", "dans", "à", "pour", "a", "al", "per", "nel", "en", "para",
    "em", "no", "naar", "voor", "aan", "do", "dla",
];
/// Stand between names, and are none; keys of records are called so too.
const JOINTS: [&str; 12] =
    ["from", "with", "into", "onto", "about", "that", "this", "they", "them", "have", "been", "were"];
/// No subject is longer, and no clause that only points back.
const SUBJECT: usize = 24;
const SHORT: usize = 7;

/// The bytes of a folded text that a word behind them denies.
pub(super) fn denied(text: &str) -> Vec<(usize, usize)> {
    let clauses = Clauses::of(text);
    let mut found = Vec::new();
    for (number, clause) in clauses.all.iter().enumerate() {
        let said = Said::of(&clauses, *clause);
        let before = || {
            let before = number.checked_sub(1).and_then(|before| clauses.all.get(before));
            before.map(|before| (*before, Said::of(&clauses, *before)))
        };
        match said.denies() {
            Some(Denies::From(at)) => found.push(clauses.bytes(at, clause.behind)),
            Some(Denies::Back { surely }) => {
                let fits = |said: &Said| said.describes() || (surely && !said.asks());
                let instead = clauses.all.get(number.saturating_add(1)).is_some_and(|next| clauses.says_instead(*next));
                if let Some((before, _)) = before().filter(|(_, said)| fits(said) && !instead) {
                    found.extend(clauses.without(before, &JOINTS));
                }
            }
            None => {}
        }
        // I'll take care of the return, and of what was spoken of before.
        if said.is_own() {
            found.push(clauses.bytes(said.own_start(), clause.behind));
        }
    }
    found
}

/// What a clause denies.
enum Denies {
    /// Itself, from a word on.
    From(usize),
    /// The clause before it: if that describes something, or `surely` also if it only asks for nothing.
    Back { surely: bool },
}

/// The words of a clause without those that only open and close it.
struct Said<'a> {
    words: Vec<std::borrow::Cow<'a, str>>,
    /// The number of the first of them.
    first: usize,
    /// The word that opens it, if that is none of them.
    head: Option<std::borrow::Cow<'a, str>>,
    /// Whether a quotation ends with it.
    quotes: bool,
}

impl<'a> Said<'a> {
    fn of(clauses: &Clauses<'a>, clause: Clause) -> Self {
        let mut words = clauses.plain(clause);
        while words.len() > 1 && words.last().is_some_and(|word| TAILS.contains(&&**word)) {
            words.pop();
        }
        let heads = words.iter().take_while(|word| HEADS.contains(&&***word)).count();
        let heads = heads.min(words.len().saturating_sub(1));
        let head = heads.checked_sub(1).and_then(|_| words.first().cloned());
        let behind = clause.behind.checked_sub(1).map_or("", |last| clauses.between(last));
        let quotes = behind.starts_with(['\'', '"', '”', '“', '’', '»', '」']);
        Self { words: words.split_off(heads), first: clause.first.saturating_add(heads), head, quotes }
    }

    fn get(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word)
    }

    fn last(&self) -> &str {
        self.words.last().map_or("", |word| word)
    }

    fn has(&self, list: &[&str]) -> bool {
        self.words.iter().any(|word| list.contains(&&**word))
    }

    /// Whether it tells of something.
    fn describes(&self) -> bool {
        let tells = self.words.iter().position(|word| TELLS_OF.contains(&&**word));
        let other = |at: usize| self.words.iter().take(at).any(|word| OF_ANOTHER.contains(&&**word));
        !self.asks() && (tells.is_some_and(|at| at > 0 && !other(at)) || ARTICLES.contains(&self.get(0)))
    }

    /// Whether it asks for something.
    fn asks(&self) -> bool {
        let asks = |word: &str| ASKS.contains(&word);
        asks(self.get(0)) || self.head.as_deref().is_some_and(asks)
    }

    fn denies(&self) -> Option<Denies> {
        if let Some(verb) = self.denial().or_else(|| self.stays()).or_else(|| self.waits()) {
            return self.subject(verb);
        }
        if self.is_own() {
            return (self.words.len() <= SHORT && self.has(&BACK)).then_some(Denies::Back { surely: false });
        }
        if self.is_nothing() {
            return Some(Denies::From(self.first));
        }
        self.bids()
    }

    /// What is denied of the subject before the word `verb`.
    fn subject(&self, verb: usize) -> Option<Denies> {
        let from = verb.saturating_sub(SUBJECT);
        let apart = (from..verb).rev().find(|at| APART.contains(&self.get(*at)));
        let start = apart.map_or(0, |at| at.saturating_add(1));
        let subject = self.words.get(start..verb).unwrap_or_default();
        let own = |word: &str| I.contains(&word) || matches!(word, "you" | "we" | "du" | "wir" | "tu" | "nous");
        let relative = self.words.iter().take(verb).any(|word| matches!(&**word, "who" | "which" | "whose"));
        if relative || (apart.is_some() && subject.is_empty()) || (apart.is_none() && TELLS.contains(&self.get(0))) {
            return None;
        }
        if !subject.is_empty() && subject.len() <= 2 && subject.iter().all(|word| BACK.contains(&&**word)) {
            return (apart.is_none()).then_some(Denies::Back { surely: false });
        }
        let mine = subject.first().is_some_and(|word| own(word)) && subject.len() == 1;
        let named = !subject.is_empty() && !mine;
        named.then(|| Denies::From(self.first.saturating_add(start)))
    }

    /// The word before which the subject stands that does not take part.
    fn denial(&self) -> Option<usize> {
        let last = self.words.len().checked_sub(1)?;
        let near = |at: usize| (1..=2).any(|step| TAKES_PART.contains(&self.get(at.saturating_add(step))));
        let some =
            |at: &usize| *at > 0 && NOT.contains(&self.get(*at)) && !NO_END.contains(&self.get(at.saturating_sub(1)));
        let makes_it = |at: usize| self.get(at) != "make" || self.get(at.saturating_add(1)) == "it";
        let takes = (0..=last).filter(some).find(|at| near(*at) && makes_it(at.saturating_add(1)));
        let ends = || {
            let behind = usize::from(matches!(self.get(last.saturating_sub(1)), "nicht" | "niet"));
            let at = last.saturating_sub(behind);
            // In Dutch, pas is only then.
            let meant = self.get(at) != "pas" || self.words.iter().any(|word| *word == "ne" || word.starts_with("n'"));
            (NOT_AT_ITS_END.contains(&self.get(at)) && some(&at) && meant && !self.quotes).then_some(at)
        };
        let at = takes.or_else(ends)?;
        // Is not, and n'est pas: the verb is before it.
        Some(if self.is_verb(at.saturating_sub(1)) && at > 1 { at.saturating_sub(1) } else { at })
    }

    fn is_verb(&self, at: usize) -> bool {
        const VERBS: [&str; 14] =
            ["is", "are", "does", "do", "will", "must", "ist", "sind", "muss", "est", "sont", "è", "jest", "hoeft"];
        VERBS.contains(&self.get(at)) || self.get(at).starts_with("n'")
    }

    /// The word that says that something stays.
    fn stays(&self) -> Option<usize> {
        let at = self.words.iter().position(|word| STAYS.contains(&&**word))?;
        let next = self.get(at.saturating_add(1));
        let noun = matches!(self.get(at.checked_sub(1)?), "le" | "un" | "the" | "a" | "to");
        let modal = matches!(self.get(at.saturating_sub(1)), "must" | "should" | "can" | "may" | "will" | "shall");
        let stays = !noun && (next.is_empty() || STAYS_AS.contains(&next));
        stays.then(|| if modal && at > 1 { at.saturating_sub(1) } else { at })
    }

    /// The word that says that something can wait.
    fn waits(&self) -> Option<usize> {
        let last = self.words.len().checked_sub(1)?;
        let can = || last.checked_sub(1).filter(|at| WAIT.contains(&self.last()) && CAN.contains(&self.get(*at)));
        if self.last() == "waits" { Some(last) } else { can() }
    }

    /// Whether the person does it.
    fn is_own(&self) -> bool {
        let has = |phrase: &&[&str]| {
            self.words.windows(phrase.len()).any(|words| words.iter().zip(*phrase).all(|(own, word)| own == word))
        };
        (MYSELF.contains(&self.last()) && self.has(&I)) || MINE.iter().any(has)
    }

    /// Where it begins what the person does: behind `that`, or behind whom somebody is to tell it.
    fn own_start(&self) -> usize {
        let own = self.words.iter().position(|word| I.contains(&&**word)).unwrap_or(0);
        let apart = (0..own).rev().find(|at| APART.contains(&self.get(*at))).map(|at| at.saturating_add(1));
        let told = TELLS.contains(&self.get(0)).then_some(own);
        self.first.saturating_add(apart.or(told).unwrap_or(0))
    }

    /// Nothing for somebody, or into something.
    fn is_nothing(&self) -> bool {
        NOTHING.contains(&self.get(0)) && FOR_WHOM.contains(&self.get(1))
    }

    /// Whether it bids somebody leave what was spoken of before.
    fn bids(&self) -> Option<Denies> {
        let (first, second) = (self.get(0), self.get(1));
        let back = |word: &str| BACK.contains(&word);
        let dont =
            matches!(first, "don't" | "dont" | "never") || matches!((first, second), ("do", "not") | ("no", "need"));
        let nothing = (first, second) == ("make", "sure") && self.has(&["nothing"]);
        let act = !self.words.iter().any(|word| NO_ACT.iter().any(|part| word.starts_with(part)));
        let points = back(self.last()) && self.words.len() <= SHORT;
        let ignores = IGNORE.contains(&first)
            && back(second)
            && (self.words.len() == 2 || AS_IS.contains(&self.get(2)) || self.get(2) == "one")
            && self.words.len() <= SHORT;
        let not = matches!(first, "not" | "nicht" | "pas" | "niet" | "nie" | "não")
            && back(second)
            && (2..=3).contains(&self.words.len())
            && back(self.last());
        let surely = self.head.as_deref().is_some_and(|head| SO.contains(&head));
        let bids = ((dont || nothing) && points && act) || ignores || not || ALREADY_BACK.contains(&first);
        bids.then_some(Denies::Back { surely })
    }
}
