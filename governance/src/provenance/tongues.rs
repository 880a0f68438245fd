//! The words that texts use for days, times, numbers, money and counts, in the languages that are read: English, German,
//! French, Italian, Spanish, Portuguese, Dutch, Polish, Chinese, Japanese and Arabic. All folded.
//!
//! A word that means two of these things in two languages is left out where the other reading would be a wrong one.

use std::{collections::HashMap, sync::LazyLock};

use super::{phrases::ORDINALS, text::is_wide};

/// The months, 1 to 12.
const MONTHS: [&[&str]; 12] = [
    &["january", "jan", "januar", "jänner", "janvier", "gennaio", "enero", "janeiro", "januari", "stycznia", "يناير"],
    &["february", "feb", "februar", "février", "febbraio", "febrero", "fevereiro", "februari", "lutego", "فبراير"],
    &["march", "mar", "märz", "mars", "marzo", "março", "maart", "marca", "مارس"],
    &["april", "apr", "avril", "aprile", "abril", "kwietnia", "أبريل", "ابريل"],
    &["may", "mai", "maggio", "mayo", "maio", "mei", "maja", "مايو"],
    &["june", "jun", "juni", "juin", "giugno", "junio", "junho", "czerwca", "يونيو"],
    &["july", "jul", "juli", "juillet", "luglio", "julio", "julho", "lipca", "يوليو"],
    &["august", "aug", "août", "agosto", "augustus", "sierpnia", "أغسطس", "اغسطس"],
    &["september", "sep", "sept", "septembre", "settembre", "septiembre", "setembro", "września", "سبتمبر"],
    &[
        "october",
        "oct",
        "oktober",
        "okt",
        "octobre",
        "ottobre",
        "octubre",
        "outubro",
        "października",
        "أكتوبر",
        "اكتوبر",
    ],
    &["november", "nov", "novembre", "noviembre", "novembro", "listopada", "نوفمبر"],
    &["december", "dec", "dezember", "dez", "décembre", "dicembre", "diciembre", "dezembro", "grudnia", "ديسمبر"],
];

/// The days of the week, from Monday.
const WEEKDAYS: [&[&str]; 7] = [
    &[
        "monday",
        "montag",
        "lundi",
        "lunedì",
        "lunes",
        "segunda-feira",
        "maandag",
        "poniedziałek",
        "周一",
        "星期一",
        "月曜日",
        "الاثنين",
    ],
    &[
        "tuesday",
        "dienstag",
        "mardi",
        "martedì",
        "martes",
        "terça-feira",
        "dinsdag",
        "wtorek",
        "周二",
        "星期二",
        "火曜日",
        "الثلاثاء",
    ],
    &[
        "wednesday",
        "mittwoch",
        "mercredi",
        "mercoledì",
        "miércoles",
        "quarta-feira",
        "woensdag",
        "środa",
        "środę",
        "周三",
        "星期三",
        "水曜日",
        "الأربعاء",
    ],
    &[
        "thursday",
        "donnerstag",
        "jeudi",
        "giovedì",
        "jueves",
        "quinta-feira",
        "donderdag",
        "czwartek",
        "周四",
        "星期四",
        "木曜日",
        "الخميس",
    ],
    &[
        "friday",
        "freitag",
        "vendredi",
        "venerdì",
        "viernes",
        "sexta-feira",
        "vrijdag",
        "piątek",
        "周五",
        "星期五",
        "金曜日",
        "الجمعة",
    ],
    &[
        "saturday",
        "samstag",
        "sonnabend",
        "samedi",
        "sabato",
        "sábado",
        "zaterdag",
        "sobota",
        "sobotę",
        "周六",
        "星期六",
        "土曜日",
        "السبت",
    ],
    &[
        "sunday",
        "sonntag",
        "dimanche",
        "domenica",
        "domingo",
        "zondag",
        "niedziela",
        "niedzielę",
        "周日",
        "星期日",
        "星期天",
        "日曜日",
        "الأحد",
    ],
];

/// The days of the week in English, of every week.
const EACH_WEEK: [&str; 7] = ["mondays", "tuesdays", "wednesdays", "thursdays", "fridays", "saturdays", "sundays"];

/// Days counted from the turn, with how many days later they are.
const DAYS: [(i64, &[&str]); 6] = [
    (
        0,
        &[
            "today",
            "tonight",
            "tonite",
            "heute",
            "aujourd'hui",
            "oggi",
            "stasera",
            "hoy",
            "hoje",
            "vandaag",
            "vanavond",
            "dziś",
            "dzisiaj",
            "今天",
            "今日",
            "今晚",
            "اليوم",
        ],
    ),
    (
        1,
        &[
            "tomorrow", "tmrw", "tmr", "morgen", "demain", "domani", "mañana", "amanhã", "jutro", "明天", "明日",
            "غدا", "غدًا", "غداً",
        ],
    ),
    (2, &["übermorgen", "après-demain", "dopodomani", "overmorgen", "pojutrze", "后天", "明後日"]),
    (3, &["大后天"]),
    (-1, &["yesterday", "gestern", "ieri", "ayer", "ontem", "gisteren", "wczoraj", "昨天", "昨日", "أمس"]),
    (-2, &["vorgestern", "avant-hier", "eergisteren", "przedwczoraj", "前天", "一昨日"]),
];

/// The numbers from two to twelve, without words that are also others.
const NUMBERS: [&[&str]; 11] = [
    &["zwei", "deux", "dos", "dois", "duas", "twee", "dwa", "dwie", "dwóch", "两", "二"],
    &["drei", "trois", "tre", "tres", "três", "drie", "trzy", "三"],
    &["vier", "quatre", "quattro", "cuatro", "quatro", "cztery", "四"],
    &["fünf", "cinq", "cinque", "cinco", "vijf", "pięć", "五"],
    &["sechs", "sei", "seis", "zes", "sześć", "六"],
    &["sieben", "sette", "siete", "sete", "zeven", "siedem", "七"],
    &["acht", "huit", "otto", "ocho", "oito", "osiem", "八"],
    &["neun", "neuf", "nove", "nueve", "negen", "dziewięć", "九"],
    &["zehn", "dix", "dieci", "diez", "dez", "tien", "dziesięć", "十"],
    &["elf", "onze", "undici", "jedenaście"],
    &["zwölf", "douze", "dodici", "doce", "doze", "twaalf", "dwanaście"],
];

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Unit {
    Minute,
    Hour,
    Day,
    Night,
    Week,
    Month,
    Person,
    Adult,
    Child,
    Piece,
    Percent,
    Kilo,
    Bag,
    Year,
}

impl Unit {
    /// How many days one of it is.
    pub(super) const fn days(self) -> Option<i64> {
        match self {
            Self::Day | Self::Night => Some(1),
            Self::Week => Some(7),
            _ => None,
        }
    }

    /// Whether a number of these is one of `wanted`: adults are people, and children are not all of them.
    pub(super) fn is(self, wanted: Self) -> bool {
        self == wanted || matches!((self, wanted), (Self::Person, Self::Adult) | (Self::Adult, Self::Person))
    }
}

const UNITS: [(Unit, &[&str]); 14] = [
    (
        Unit::Minute,
        &[
            "minute",
            "minutes",
            "min",
            "mins",
            "minuten",
            "minuti",
            "minuto",
            "minutos",
            "minut",
            "minuty",
            "分钟",
            "分間",
            "دقيقة",
            "دقائق",
        ],
    ),
    (
        Unit::Hour,
        &[
            "hour",
            "hours",
            "hrs",
            "stunde",
            "stunden",
            "heure",
            "heures",
            "ora",
            "ore",
            "hora",
            "horas",
            "uren",
            "godzina",
            "godziny",
            "godzin",
            "小时",
            "時間",
            "ساعة",
            "ساعات",
        ],
    ),
    (
        Unit::Day,
        &[
            "day", "days", "tag", "tage", "tagen", "jour", "jours", "giorno", "giorni", "día", "días", "dia", "dias",
            "dag", "dagen", "dzień", "dni", "天", "يوم", "أيام",
        ],
    ),
    (
        Unit::Night,
        &[
            "night",
            "nights",
            "nacht",
            "nächte",
            "nächten",
            "nuit",
            "nuits",
            "notte",
            "notti",
            "noche",
            "noches",
            "noite",
            "noites",
            "nachten",
            "noc",
            "noce",
            "nocy",
            "晚",
            "泊",
            "ليلة",
            "ليال",
            "ليالي",
        ],
    ),
    (
        Unit::Week,
        &[
            "week",
            "weeks",
            "woche",
            "wochen",
            "semaine",
            "semaines",
            "settimana",
            "settimane",
            "semana",
            "semanas",
            "weken",
            "tydzień",
            "tygodnie",
            "tygodni",
            "周",
            "週間",
            "أسبوع",
            "أسابيع",
        ],
    ),
    (
        Unit::Month,
        &[
            "month",
            "months",
            "monat",
            "monate",
            "monaten",
            "mois",
            "mese",
            "mesi",
            "mes",
            "meses",
            "mês",
            "maand",
            "maanden",
            "miesiąc",
            "miesiące",
            "miesięcy",
            "个月",
            "شهر",
            "أشهر",
        ],
    ),
    (
        Unit::Person,
        &[
            "people",
            "persons",
            "person",
            "guest",
            "guests",
            "passenger",
            "passengers",
            "traveller",
            "travellers",
            "personen",
            "leute",
            "gäste",
            "personnes",
            "personne",
            "persone",
            "persona",
            "ospiti",
            "personas",
            "pessoas",
            "gasten",
            "osoby",
            "osób",
            "个人",
            "人",
            "位",
            "名",
            "أشخاص",
            "شخص",
            "شخصين",
        ],
    ),
    (
        Unit::Adult,
        &[
            "adult",
            "adults",
            "erwachsene",
            "erwachsenen",
            "adultes",
            "adulte",
            "adulti",
            "adulto",
            "adultos",
            "volwassenen",
            "dorośli",
            "dorosłych",
            "成人",
            "大人",
            "بالغ",
            "بالغين",
        ],
    ),
    (
        Unit::Child,
        &[
            "child",
            "children",
            "kid",
            "kids",
            "kind",
            "kinder",
            "kindern",
            "enfant",
            "enfants",
            "bambini",
            "bambino",
            "niño",
            "niños",
            "criança",
            "crianças",
            "kinderen",
            "dziecko",
            "dzieci",
            "儿童",
            "小孩",
            "子供",
            "طفل",
            "أطفال",
        ],
    ),
    (
        Unit::Piece,
        &[
            "ticket",
            "tickets",
            "piece",
            "pieces",
            "copy",
            "copies",
            "karten",
            "stück",
            "billets",
            "biglietti",
            "entradas",
            "bilhetes",
            "kaartjes",
            "bilety",
            "biletów",
            "张",
            "個",
            "个",
            "件",
            "份",
            "枚",
            "تذاكر",
            "تذكرة",
        ],
    ),
    (Unit::Percent, &["%", "percent", "pct", "prozent", "pourcent", "procent", "procenta", "procentów", "٪"]),
    (
        Unit::Kilo,
        &[
            "kg",
            "kgs",
            "kilo",
            "kilos",
            "kilogram",
            "kilograms",
            "kilogramm",
            "chili",
            "quilos",
            "公斤",
            "キロ",
            "كيلو",
        ],
    ),
    (
        Unit::Bag,
        &[
            "bag",
            "bags",
            "suitcase",
            "suitcases",
            "koffer",
            "koffers",
            "gepäckstück",
            "gepäckstücke",
            "taschen",
            "valise",
            "valises",
            "bagage",
            "bagages",
            "valigia",
            "valigie",
            "maleta",
            "maletas",
            "mala",
            "malas",
            "walizka",
            "walizki",
            "walizek",
            "件行李",
            "حقيبة",
            "حقائب",
        ],
    ),
    // How old somebody is; the word stands for that also where a text says it otherwise.
    (
        Unit::Year,
        &["years", "yrs", "jahre", "jahren", "ans", "anni", "años", "anos", "jaar", "lat", "岁", "歳", "سنوات", "سنة"],
    ),
];

/// The words of an argument's name that say what it counts.
const COUNTERS: [(Unit, &[&str]); 14] = [
    (Unit::Minute, &["minute", "minutes", "min", "mins"]),
    (Unit::Hour, &["hour", "hours"]),
    (Unit::Day, &["days"]),
    (Unit::Night, &["nights"]),
    (Unit::Week, &["weeks"]),
    (
        Unit::Person,
        &["party", "people", "persons", "guests", "passengers", "seats", "covers", "travellers", "riders", "pax"],
    ),
    (Unit::Adult, &["adults"]),
    (Unit::Child, &["children", "kids", "infants"]),
    (Unit::Month, &["months"]),
    (Unit::Percent, &["percent", "percentage", "pct"]),
    (Unit::Kilo, &["kg", "kilos", "kilograms"]),
    (Unit::Bag, &["bags", "suitcases", "luggage", "baggage"]),
    (Unit::Year, &["age", "ages"]),
    (Unit::Piece, &["qty", "quantity", "count", "tickets", "pieces", "copies"]),
];

/// What an argument counts, by a word of its name.
pub(super) fn counter(word: &str) -> Option<Unit> {
    COUNTERS.iter().find(|(_, words)| words.contains(&word)).map(|(unit, _)| *unit)
}

/// Stand before a number of people: a table for 4.
pub(super) const FOR: [&str; 8] = ["for", "für", "pour", "per", "para", "voor", "dla", "لـ"];

/// May stand between a day and how long something lasts from then on.
pub(super) const FROM: [&str; 27] = [
    "for",
    "from",
    "starting",
    "beginning",
    "on",
    "the",
    "für",
    "ab",
    "vom",
    "am",
    "dem",
    "pour",
    "du",
    "à",
    "per",
    "dal",
    "da",
    "para",
    "por",
    "desde",
    "el",
    "del",
    "de",
    "vanaf",
    "voor",
    "od",
    "na",
];

/// Stand between the two days of `from 4 to 7 March`.
pub(super) const UNTIL: [&str; 18] = [
    "to", "until", "till", "til", "and", "bis", "und", "au", "al", "a", "hasta", "até", "tot", "do", "–", "-", "t/m",
    "إلى",
];

/// Stand between a day and its month, or a month and its year.
pub(super) const OF: [&str; 5] = ["of", "de", "del", "do", "di"];

/// Stand before an hour: at 10.
pub(super) const AT: [&str; 9] = ["at", "um", "alle", "las", "às", "om", "godz", "o", "الساعة"];

/// Stand behind an hour: 10 Uhr.
pub(super) const O_CLOCK: [&str; 8] = ["uhr", "h", "o'clock", "uur", "点", "點", "時", "时"];

/// Say that an hour from 1 to 11 is one of the afternoon or evening.
const AFTERNOON: [&str; 26] = [
    "p.m",
    "afternoon",
    "evening",
    "tonight",
    "tonite",
    "stasera",
    "vanavond",
    "今晚",
    "pm",
    "nachmittag",
    "nachmittags",
    "abends",
    "après-midi",
    "soir",
    "pomeriggio",
    "sera",
    "tarde",
    "noche",
    "middags",
    "middag",
    "avonds",
    "południu",
    "下午",
    "晚上",
    "午後",
    "مساء",
];
/// And of the morning.
const MORNING: [&str; 14] = [
    "a.m",
    "morning",
    "am",
    "früh",
    "vormittag",
    "vormittags",
    "morgens",
    "matin",
    "mattina",
    "mañana",
    "ochtends",
    "上午",
    "早上",
    "午前",
];

/// Says half past the hour before: halb vier.
pub(super) const HALB: &str = "halb";
/// Says so too in Dutch: half vier and om half 4.
pub(super) const HALF: &str = "half";
/// The Dutch one of `AT`.
pub(super) const OM: &str = "om";

/// Signs, words and names for currencies, with their ISO 4217 codes.
pub(super) const MONEY: [(&str, &str); 48] = [
    ("$", "usd"),
    ("us$", "usd"),
    ("dollar", "usd"),
    ("dollars", "usd"),
    ("dollari", "usd"),
    ("dólares", "usd"),
    ("美元", "usd"),
    ("دولار", "usd"),
    ("€", "eur"),
    ("euro", "eur"),
    ("euros", "eur"),
    ("欧元", "eur"),
    ("ユーロ", "eur"),
    ("يورو", "eur"),
    ("£", "gbp"),
    ("pound", "gbp"),
    ("pounds", "gbp"),
    ("quid", "gbp"),
    ("sterline", "gbp"),
    ("libras", "gbp"),
    ("英镑", "gbp"),
    ("¥", "jpy"),
    ("yen", "jpy"),
    ("日元", "jpy"),
    ("円", "jpy"),
    ("人民币", "cny"),
    ("元", "cny"),
    ("块", "cny"),
    ("rmb", "cny"),
    ("₹", "inr"),
    ("rupee", "inr"),
    ("rupees", "inr"),
    ("fr", "chf"),
    ("sfr", "chf"),
    ("franc", "chf"),
    ("francs", "chf"),
    ("franken", "chf"),
    ("zł", "pln"),
    ("złoty", "pln"),
    ("złote", "pln"),
    ("złotych", "pln"),
    ("₩", "krw"),
    ("r$", "brl"),
    ("reais", "brl"),
    ("درهم", "aed"),
    ("ريال", "sar"),
    ("a$", "aud"),
    ("₪", "ils"),
];

/// The codes that are read as currencies: those of ISO 4217 that are common and no words.
pub(super) const CODES: [&str; 34] = [
    "usd", "eur", "gbp", "chf", "jpy", "cny", "inr", "aud", "cad", "nzd", "sek", "nok", "dkk", "pln", "czk", "huf",
    "brl", "mxn", "zar", "sgd", "hkd", "krw", "ron", "bgn", "isk", "aed", "sar", "ils", "thb", "idr", "php", "twd",
    "egp", "qar",
];

/// Everything that a word can mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meaning {
    /// 1 to 12.
    pub(super) month: Option<u32>,
    /// 0 for Monday to 6 for Sunday.
    pub(super) weekday: Option<i64>,
    /// A day, by how many days after the turn it is.
    pub(super) days: Option<i64>,
    /// 2 to 12.
    pub(super) number: Option<u32>,
    /// A place in a row, from 1.
    pub(super) ordinal: Option<u32>,
    /// What a number before it counts.
    pub(super) unit: Option<Unit>,
    /// Half of a day: whether it is the later one.
    pub(super) half: Option<bool>,
}

static MEANINGS: LazyLock<HashMap<&'static str, Meaning>> = LazyLock::new(|| {
    let mut meanings: HashMap<&'static str, Meaning> = HashMap::new();
    for (words, month) in MONTHS.iter().zip(1..) {
        words.iter().for_each(|word| meanings.entry(word).or_default().month = Some(month));
    }
    for (words, weekday) in WEEKDAYS.iter().zip(0..) {
        words.iter().for_each(|word| meanings.entry(word).or_default().weekday = Some(weekday));
    }
    for (word, weekday) in EACH_WEEK.iter().zip(0..) {
        meanings.entry(word).or_default().weekday = Some(weekday);
    }
    for (days, words) in DAYS {
        words.iter().for_each(|word| meanings.entry(word).or_default().days = Some(days));
    }
    for (words, number) in NUMBERS.iter().zip(2..) {
        words.iter().for_each(|word| meanings.entry(word).or_default().number = Some(number));
    }
    for (unit, words) in UNITS {
        words.iter().for_each(|word| meanings.entry(word).or_default().unit = Some(unit));
    }
    for (words, place) in ORDINALS.iter().zip(1..) {
        words.iter().for_each(|word| meanings.entry(word).or_default().ordinal = Some(place));
    }
    AFTERNOON.iter().for_each(|word| meanings.entry(word).or_default().half = Some(true));
    MORNING.iter().for_each(|word| meanings.entry(word).or_default().half = Some(false));
    meanings
});

/// What a folded word means.
pub(super) fn meaning(word: &str) -> Meaning {
    // Of yesterday's, yesterday.
    let own = || word.strip_suffix("'s").or_else(|| word.strip_suffix("’s"));
    MEANINGS.get(word).or_else(|| MEANINGS.get(own()?)).copied().unwrap_or_default()
}

/// Words of scripts that set no spaces, longest first.
static UNSPACED: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let signs = ["月", "日", "号", "號", "年", "分", "半"].into_iter().chain(O_CLOCK);
    let money = MONEY.iter().map(|(word, _)| *word);
    let all = MEANINGS.keys().copied().chain(signs).chain(money);
    let mut words: Vec<&str> = all.filter(|word| word.chars().all(is_wide)).collect();
    words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
    words
});

/// How many bytes the known word at the beginning of `text` takes; of what is not known, one character.
pub(super) fn unspaced(text: &str) -> usize {
    let known = UNSPACED.iter().find(|word| text.starts_with(**word)).map(|word| word.len());
    known.unwrap_or_else(|| text.chars().next().map_or(1, char::len_utf8))
}
