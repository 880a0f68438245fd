//! The words with which texts say how long, how often, which of several, and what not; in the languages of `tongues`. All
//! folded.

use std::{collections::HashMap, sync::LazyLock};

use super::tongues::Unit;

/// Parts of an hour that have names of their own, in minutes.
const PARTS_OF_AN_HOUR: [(u32, &[&str]); 3] = [
    (
        30,
        &[
            "half an hour",
            "half hour",
            "half-hour",
            "half-an-hour",
            "halbe stunde",
            "halben stunde",
            "halbstündig",
            "demi-heure",
            "mezz'ora",
            "mezzora",
            "media hora",
            "meia hora",
            "half uur",
            "halfuur",
            "pół godziny",
            "半小时",
            "半時間",
        ],
    ),
    (
        15,
        &[
            "quarter of an hour",
            "quarter hour",
            "quarter-hour",
            "viertelstunde",
            "quart d'heure",
            "quarto d'ora",
            "cuarto de hora",
            "quarto de hora",
            "kwartier",
            "kwadrans",
            "一刻钟",
        ],
    ),
    (
        45,
        &[
            "three quarters of an hour",
            "three-quarters of an hour",
            "dreiviertelstunde",
            "trois quarts d'heure",
            "tre quarti d'ora",
            "tres cuartos de hora",
            "três quartos de hora",
            "driekwartier",
            "trzy kwadranse",
        ],
    ),
];

/// A part of an hour that has a name.
pub(super) struct Fraction {
    pub(super) words: Vec<&'static str>,
    pub(super) minutes: u32,
}

/// The parts of an hour by their first word.
pub(super) static FRACTIONS: LazyLock<HashMap<&'static str, Vec<Fraction>>> = LazyLock::new(|| {
    let mut by_first: HashMap<&str, Vec<Fraction>> = HashMap::new();
    for (minutes, phrases) in PARTS_OF_AN_HOUR {
        for phrase in phrases {
            let words: Vec<&str> = phrase.split(' ').collect();
            by_first.entry(words.first().copied().unwrap_or_default()).or_default().push(Fraction { words, minutes });
        }
    }
    by_first
});

/// Stand before a unit and say that it is one of it: an hour.
pub(super) const ONE: [&str; 13] =
    ["a", "an", "one", "ein", "eine", "einen", "un", "une", "una", "um", "uma", "een", "één"];

/// Stand before what comes again and again.
pub(super) const EVERY: [&str; 20] = [
    "every", "each", "jeden", "jede", "jedes", "alle", "chaque", "tous", "ogni", "cada", "todos", "todas", "elke",
    "iedere", "każdy", "każdego", "每", "毎", "كل", "co",
];

/// The days from Monday to Friday.
pub(super) const WORKING_DAYS: [&str; 10] =
    ["weekday", "workday", "weekdays", "werktag", "wochentag", "werkdag", "平日", "工作日", "jour-ouvré", "roboczy"];

/// Say how often in one word.
pub(super) const HOW_OFTEN: [(Unit, &[&str]); 3] = [
    (Unit::Day, &["daily", "täglich", "quotidien", "quotidiano", "diario", "diariamente", "dagelijks", "codziennie"]),
    (Unit::Week, &["weekly", "wöchentlich", "hebdomadaire", "settimanale", "semanal", "semanalmente", "wekelijks"]),
    (Unit::Month, &["monthly", "monatlich", "mensuel", "mensile", "mensual", "mensal", "maandelijks", "miesięcznie"]),
];

/// Stand behind a length and say that it is counted back from a moment.
pub(super) const LEADS: [&str; 14] = [
    "before",
    "prior",
    "beforehand",
    "ahead",
    "earlier",
    "vorher",
    "vor",
    "avant",
    "prima",
    "antes",
    "vooraf",
    "przed",
    "前",
    "قبل",
];

/// Stand behind a length and say that it is counted on from a moment.
pub(super) const BEHIND: [&str; 12] =
    ["after", "later", "nach", "später", "après", "dopo", "después", "depois", "na", "po", "后", "後"];

/// Stand before what is not meant.
pub(super) const EXCEPT: [&str; 57] = [
    "not",
    "except",
    "excluding",
    "without",
    "nicht",
    "außer",
    "ausser",
    "ohne",
    "statt",
    "sauf",
    "tranne",
    "eccetto",
    "salvo",
    "excepto",
    "exceto",
    "menos",
    "behalve",
    "niet",
    "oprócz",
    "nie",
    "除了",
    "don't",
    "don’t",
    "dont",
    "never",
    "kein",
    "keine",
    "keinen",
    "keiner",
    "niemals",
    "anstatt",
    "anstelle",
    "sans",
    "pas",
    "jamais",
    "sin",
    "nunca",
    "senza",
    "non",
    "não",
    "sem",
    "geen",
    "zonder",
    "bez",
    "nooit",
    "لا",
    "ولا",
    "ليس",
    "وليس",
    "بدون",
    "باستثناء",
    "عدا",
    "سوى",
    "عدم",
    "لم",
    "لن",
    "غير",
];
/// Beginnings of words that say of what stands beside them that it is to be no more.
pub(super) const OFF: [&str; 17] = [
    "off",
    "disabl",
    "deactivat",
    "remov",
    "stop",
    "cancel",
    "without",
    "undo",
    "lift",
    "aus",
    "deaktiv",
    "désactiv",
    "desactiv",
    "disattiv",
    "uit",
    "wyłącz",
    "no",
];
/// Beside such a word, parts of those that make it no denial: do not forget, no later than.
pub(super) const NO_DENIAL: [&str; 20] = [
    "forget",
    "hesitate",
    "disturb",
    "later",
    "more",
    "less",
    "only",
    "problem",
    "vergiss",
    "vergess",
    "vergeet",
    "oubli",
    "olvid",
    "dimentic",
    "esque",
    "zapom",
    "stör",
    "dérang",
    "تنس",
    "تتردد",
];
/// Two words that stand before what is not meant.
pub(super) const EXCEPT_TWO: [(&str, &str); 5] =
    [("instead", "of"), ("rather", "than"), ("other", "than"), ("apart", "from"), ("no", "need")];
/// Stand before what is to stay as it is, if an `as` comes behind it, or one of `LEFT` ends the clause.
pub(super) const LEAVE: [&str; 10] =
    ["leave", "keep", "lass", "lasst", "laisse", "laissez", "lascia", "deja", "deixa", "laat"];
/// Say at the end of a clause that what was named in it is left.
pub(super) const LEFT: [&str; 10] =
    ["out", "alone", "weg", "raus", "côté", "tranquille", "fuori", "stare", "fuera", "fora"];

/// Which of several: the first, the second and so on.
pub(super) const ORDINALS: [&[&str]; 10] = [
    &[
        "first",
        "erste",
        "ersten",
        "premier",
        "première",
        "primo",
        "prima",
        "primero",
        "primera",
        "primeiro",
        "primeira",
        "eerste",
        "pierwszy",
    ],
    &[
        "second",
        "zweite",
        "zweiten",
        "deuxième",
        "seconde",
        "secondo",
        "seconda",
        "segundo",
        "segunda",
        "tweede",
        "drugi",
    ],
    &[
        "third",
        "dritte",
        "dritten",
        "troisième",
        "terzo",
        "terza",
        "tercero",
        "tercera",
        "terceiro",
        "terceira",
        "derde",
        "trzeci",
    ],
    &["fourth", "vierte", "vierten", "quatrième", "quarto", "quarta", "cuarto", "cuarta", "vierde", "czwarty"],
    &["fifth", "fünfte", "fünften", "cinquième", "quinto", "quinta", "vijfde", "piąty"],
    &["sixth", "sechste", "sechsten", "sixième", "sesto", "sesta", "sexto", "sexta", "zesde", "szósty"],
    &["seventh", "siebte", "siebten", "septième", "settimo", "séptimo", "séptima", "sétimo", "zevende", "siódmy"],
    &["eighth", "achte", "achten", "huitième", "ottavo", "octavo", "octava", "oitavo", "achtste", "ósmy"],
    &["ninth", "neunte", "neunten", "neuvième", "nono", "noveno", "novena", "negende", "dziewiąty"],
    &["tenth", "zehnte", "zehnten", "dixième", "decimo", "décimo", "décima", "tiende", "dziesiąty"],
];
/// The one with the lowest price.
pub(super) const CHEAPEST: [&str; 14] = [
    "cheapest",
    "billigste",
    "billigsten",
    "günstigste",
    "günstigsten",
    "économique",
    "economico",
    "economica",
    "barato",
    "barata",
    "goedkoopste",
    "najtańszy",
    "最便宜",
    "الأرخص",
];
/// The last of several.
pub(super) const LAST: [&str; 14] = [
    "last",
    "letzte",
    "letzten",
    "dernier",
    "dernière",
    "ultimo",
    "ultima",
    "último",
    "última",
    "laatste",
    "ostatni",
    "最后",
    "最後",
    "الأخير",
];
/// Mean each of what is named behind them.
pub(super) const ALL: [&str; 23] = [
    "any",
    "whichever",
    "irgendein",
    "cualquier",
    "all",
    "every",
    "each",
    "both",
    "alle",
    "allen",
    "jeden",
    "jede",
    "beide",
    "tous",
    "toutes",
    "tutti",
    "tutte",
    "todos",
    "todas",
    "cada",
    "wszystkie",
    "所有",
    "全部",
];
/// Mean all people there.
pub(super) const EVERYONE: [&str; 10] =
    ["everyone", "everybody", "alle", "allen", "jeder", "tous", "tutti", "todos", "iedereen", "wszyscy"];
/// Stand right before such a word where it picks one.
pub(super) const THE: [&str; 20] = [
    "the", "der", "die", "das", "den", "dem", "le", "la", "il", "lo", "el", "o", "a", "de", "het", "al", "du", "del",
    "do", "ten",
];
/// Say that an amount is meant once for each.
pub(super) const EACH: [&str; 16] = [
    "each", "apiece", "per", "je", "jeweils", "jeder", "pro", "chacun", "chacune", "ciascuno", "cada", "elk", "każdy",
    "每人", "人均", "一人",
];
/// Stand before an hour at which something ends.
pub(super) const TILL: [&str; 8] = ["till", "until", "til", "bis", "tot", "hasta", "até", "fino"];
/// Join two of a kind.
pub(super) const JOINS: [&str; 8] = ["and", "und", "y", "e", "et", "en", "i", "o"];
/// Behind a whole number of hours: half an hour more.
pub(super) const AND_A_HALF: [&[&str]; 5] =
    [&["and", "a", "half"], &["y", "media"], &["et", "demie"], &["e", "mezza"], &["e", "meia"]];
/// Stand before how old somebody is.
pub(super) const AGED: [&str; 9] = ["aged", "are", "is", "sind", "ist", "ont", "hanno", "tienen", "zijn"];
/// Stand between an amount of money and its hundredths. Those behind the first two need the word for hundredths too.
pub(super) const AND_HUNDREDTHS: [&str; 8] = ["con", "mit", "and", "und", "et", "y", "e", "en"];
/// The hundredths of a currency.
pub(super) const HUNDREDTHS: [&str; 12] = [
    "cents",
    "cent",
    "centimes",
    "centesimi",
    "céntimos",
    "cêntimos",
    "centavos",
    "pence",
    "rappen",
    "groszy",
    "øre",
    "p",
];
/// Say behind an hour that it is one of another place.
pub(super) const ZONES: [&str; 22] = [
    "utc", "gmt", "est", "edt", "cst", "cdt", "mst", "mdt", "pst", "pdt", "cet", "cest", "bst", "jst", "eet", "eest",
    "aest", "aedt", "sgt", "hkt", "eastern", "pacific",
];
/// Stand before `time` where that is the hour here.
pub(super) const HERE: [&str; 8] = ["my", "our", "local", "this", "same", "next", "the", "every"];
/// Stand before a week and say which.
pub(super) const NEXT: [&str; 6] = ["next", "nächste", "nächster", "volgende", "próxima", "prossima"];
pub(super) const THIS: [&str; 5] = ["this", "diese", "dieser", "deze", "esta"];
/// Stand between a week and a day of it.
pub(super) const WITHIN: [&str; 5] = ["on", "am", "from", "op", "the"];
/// Are a multiple of the number before them, and no number of their own.
pub(super) const MULTIPLES: [&str; 31] = [
    "million",
    "millions",
    "millionen",
    "mio",
    "mln",
    "m",
    "k",
    "grand",
    "billion",
    "billions",
    "milliarde",
    "milliarden",
    "milliard",
    "milliards",
    "millón",
    "millones",
    "milione",
    "milioni",
    "milhão",
    "milhões",
    "miljoen",
    "milion",
    "miliony",
    "milionów",
    "lakh",
    "crore",
    "万",
    "億",
    "亿",
    "千",
    "百",
];
/// And those that are numbers too.
pub(super) const HUNDREDS: [&str; 16] = [
    "hundred", "thousand", "hundert", "tausend", "cent", "cents", "mille", "mil", "cento", "cien", "mila", "honderd",
    "duizend", "tysiąc", "tysiące", "tysięcy",
];
/// Stand before the first of two hours.
pub(super) const FROM_HOUR: [&str; 11] =
    ["from", "between", "von", "zwischen", "de", "entre", "dalle", "das", "van", "tussen", "od"];
/// Beginnings of the words that move something from one day to another.
pub(super) const MOVES: [&str; 39] = [
    "bring",
    "move",
    "moving",
    "reschedul",
    "shift",
    "push",
    "postpon",
    "bump",
    "switch",
    "change",
    "rebook",
    "verschieb",
    "verschob",
    "verleg",
    "umbuch",
    "déplac",
    "décal",
    "reporte",
    "avanc",
    "sposta",
    "rimanda",
    "anticipa",
    "mueve",
    "mover",
    "pasa",
    "cambia",
    "aplaza",
    "adia",
    "muda",
    "remarc",
    "verplaats",
    "verzet",
    "verschuif",
    "przesuń",
    "przenie",
    "przełóż",
    "改到",
    "移到",
    "انقل",
];
/// Stand before the day that it is moved to.
pub(super) const MOVED_TO: [&str; 13] =
    ["to", "onto", "till", "until", "auf", "à", "au", "a", "al", "para", "naar", "na", "إلى"];
/// Two words, or one, that stand before how many people there are.
pub(super) const WE_ARE: [(&str, &str); 15] = [
    ("we", "are"),
    ("", "we're"),
    ("", "we’re"),
    ("wir", "sind"),
    ("sind", "wir"),
    ("nous", "sommes"),
    ("on", "est"),
    ("on", "sera"),
    ("", "somos"),
    ("", "seremos"),
    ("siamo", "in"),
    ("saremo", "in"),
    ("zijn", "met"),
    ("jest", "nas"),
    ("będzie", "nas"),
];
/// Several people, of so many.
pub(super) const PARTIES: [&str; 8] = ["party", "group", "gruppe", "groupe", "gruppo", "grupo", "groep", "grupa"];
/// May stand behind a number that counts nothing that is named.
pub(super) const SMALL_WORDS: [&str; 72] = [
    "at",
    "on",
    "in",
    "to",
    "for",
    "from",
    "by",
    "with",
    "and",
    "or",
    "but",
    "as",
    "if",
    "so",
    "now",
    "instead",
    "not",
    "please",
    "that",
    "this",
    "today",
    "tomorrow",
    "tonight",
    "she",
    "he",
    "they",
    "we",
    "i",
    "you",
    "it",
    "which",
    "because",
    "total",
    "altogether",
    "extra",
    "more",
    "back",
    "into",
    "until",
    "via",
    "am",
    "um",
    "an",
    "auf",
    "für",
    "von",
    "und",
    "statt",
    "bitte",
    "à",
    "pour",
    "et",
    "au",
    "en",
    "por",
    "para",
    "y",
    "a",
    "per",
    "e",
    "il",
    "al",
    "op",
    "voor",
    "om",
    "na",
    "dla",
    "w",
    "em",
    "com",
    "con",
    "avec",
];
/// Stand before a sum of money that has no currency.
pub(super) const SUMS_BEHIND: [&str; 22] = [
    "under", "below", "over", "above", "the", "of", "to", "with", "her", "him", "them", "me", "die", "mit", "auf",
    "ihm", "ihr", "les", "avec", "los", "las", "gli",
];
/// Beginnings of words that pay, and stand before the sum.
pub(super) const SUMS_BY: [&str; 31] = [
    "pay",
    "send",
    "transfer",
    "refund",
    "approv",
    "spend",
    "charg",
    "lend",
    "deposit",
    "withdraw",
    "tip",
    "wire",
    "zahl",
    "bezahl",
    "überweis",
    "schick",
    "pai",
    "paye",
    "verse",
    "envoie",
    "rembours",
    "paga",
    "manda",
    "invia",
    "envía",
    "betaal",
    "stuur",
    "zapłać",
    "wyślij",
    "付",
    "支付",
];
