//! Numbers that are written out, over one word or several: `two hundred and five`, `fünfundzwanzig`, `treinta y cinco`.
//!
//! The words are data; how they are put together is one rule for all languages: a hundred multiplies what came before it,
//! a thousand does so too and begins anew, and anything else has to be of a smaller order than what came before.

use std::{collections::HashMap, sync::LazyLock};

use super::typed::Near;

/// The words a number is put together from, with what each is worth.
const ATOMS: [(u32, &[&str]); 38] = [
    (2, &["two", "zwei", "deux", "dos", "dois", "duas", "twee", "dwa", "dwie"]),
    (3, &["three", "drei", "trois", "tre", "tres", "três", "drie", "trzy"]),
    (4, &["four", "vier", "quatre", "quattro", "cuatro", "quatro", "cztery"]),
    (5, &["five", "fünf", "cinq", "cinque", "cinco", "vijf", "pięć"]),
    (6, &["six", "sechs", "sei", "seis", "zes", "sześć"]),
    (7, &["seven", "sieben", "sette", "siete", "sete", "zeven", "siedem"]),
    (8, &["eight", "acht", "huit", "otto", "ocho", "oito", "osiem"]),
    (9, &["nine", "neun", "neuf", "nove", "nueve", "negen", "dziewięć"]),
    (10, &["ten", "zehn", "dix", "dieci", "diez", "dez", "tien", "dziesięć"]),
    (11, &["eleven", "elf", "onze", "undici", "jedenaście"]),
    (12, &["twelve", "zwölf", "douze", "dodici", "doce", "doze", "twaalf", "dwanaście"]),
    (13, &["thirteen", "dreizehn", "treize", "tredici", "trece", "treze", "dertien", "trzynaście"]),
    (14, &["fourteen", "vierzehn", "quatorze", "quattordici", "catorce", "catorze", "veertien", "czternaście"]),
    (15, &["fifteen", "fünfzehn", "quinze", "quindici", "quince", "vijftien", "piętnaście"]),
    (16, &["sixteen", "sechzehn", "seize", "sedici", "dieciséis", "dezesseis", "zestien", "szesnaście"]),
    (17, &["seventeen", "siebzehn", "diciassette", "diecisiete", "dezassete", "zeventien", "siedemnaście"]),
    (18, &["eighteen", "achtzehn", "diciotto", "dieciocho", "dezoito", "achttien", "osiemnaście"]),
    (19, &["nineteen", "neunzehn", "diciannove", "diecinueve", "dezanove", "negentien", "dziewiętnaście"]),
    (20, &["twenty", "zwanzig", "vingt", "venti", "vent", "veinte", "veinti", "vinte", "twintig", "dwadzieścia"]),
    (30, &["thirty", "dreißig", "dreissig", "trente", "trenta", "trent", "treinta", "trinta", "dertig", "trzydzieści"]),
    (40, &["forty", "vierzig", "quarante", "quaranta", "quarant", "cuarenta", "quarenta", "veertig", "czterdzieści"]),
    (50, &["fifty", "fünfzig", "cinquante", "cinquanta", "cinquant", "cincuenta", "cinquenta", "vijftig"]),
    (60, &["sixty", "sechzig", "soixante", "sessanta", "sessant", "sesenta", "sessenta", "zestig"]),
    (70, &["seventy", "siebzig", "settanta", "settant", "setenta", "zeventig"]),
    (80, &["eighty", "achtzig", "ottanta", "ottant", "ochenta", "oitenta", "tachtig"]),
    (90, &["ninety", "neunzig", "novanta", "novant", "noventa", "negentig"]),
    (100, &["hundred", "hundert", "cento", "cien", "ciento", "honderd"]),
    (200, &["doscientos", "doscientas", "duzentos", "dwieście"]),
    (300, &["trescientos", "trescientas", "trezentos", "trzysta"]),
    (400, &["cuatrocientos", "cuatrocientas", "quatrocentos", "czterysta"]),
    (500, &["quinientos", "quinientas", "quinhentos", "pięćset"]),
    (600, &["seiscientos", "seiscientas", "seiscentos", "sześćset"]),
    (700, &["setecientos", "setecientas", "setecentos", "siedemset"]),
    (800, &["ochocientos", "ochocientas", "oitocentos", "osiemset"]),
    (900, &["novecientos", "novecientas", "novecentos", "dziewięćset"]),
    (1000, &["thousand", "tausend", "mille", "mila", "duizend", "tysiąc", "tysiące", "tysięcy"]),
    // These are other words too, and count only within a longer one.
    (1, &["one", "ein", "een", "uno", "un"]),
    (2, &["due"]),
];
/// Words that are articles or others beside being numbers: not numbers when they stand alone.
const ONLY_WITHIN: [&str; 8] = ["one", "ein", "een", "uno", "un", "due", "vent", "mila"];
/// Stand between the parts of one number.
const LINKS: [&str; 7] = ["and", "und", "y", "e", "et", "en", "i"];
/// Stand within one word.
const INNER_LINKS: [&str; 5] = ["-", "und", "ën", "en", "y"];
/// No word of a number is shorter than this, and none of more than one part shorter than twice as much.
const SHORTEST: usize = 2;
/// So many words are one number at most.
const MOST_WORDS: usize = 9;

static WORTH: LazyLock<HashMap<&'static str, u32>> =
    LazyLock::new(|| ATOMS.iter().flat_map(|(worth, words)| words.iter().map(|word| (*word, *worth))).collect());

/// By their first two bytes, the words that begin so, longest first.
static BEGINNINGS: LazyLock<HashMap<&'static [u8], Vec<&'static str>>> = LazyLock::new(|| {
    let mut beginnings: HashMap<&[u8], Vec<&str>> = HashMap::new();
    for word in WORTH.keys() {
        beginnings.entry(word.as_bytes().get(..SHORTEST).unwrap_or_default()).or_default().push(word);
    }
    beginnings.values_mut().for_each(|words| words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len())));
    beginnings
});

/// A number as far as it has been said.
#[derive(Clone, Copy, Default)]
struct Numeral {
    thousands: u32,
    rest: u32,
}

impl Numeral {
    /// With one more part, if that can follow. `linked` is whether an "and" stands before it.
    fn then(self, worth: u32, linked: bool) -> Option<Self> {
        let (tens, ones) = (self.rest % 100, self.rest % 10);
        let rest = match worth {
            1000 if self.thousands == 0 => return Some(Self { thousands: self.rest.max(1), rest: 0 }),
            100 if self.rest < 10 => self.rest.max(1).checked_mul(100)?,
            200..1000 if self.rest == 0 => worth,
            20..100 if tens == 0 || (linked && tens == ones) => self.rest.checked_add(worth)?,
            0..20 if tens == 0 || (worth < 10 && ones == 0 && tens >= 20) => self.rest.checked_add(worth)?,
            _ => return None,
        };
        Some(Self { rest, ..self })
    }

    /// With all parts of a word.
    fn word(self, word: &str) -> Option<Self> {
        if let Some(worth) = WORTH.get(word) {
            return self.then(*worth, false);
        }
        if word.len() < 3 * SHORTEST || word.bytes().any(|byte| byte.is_ascii_digit() || byte == b'@') {
            return None;
        }
        self.inner(word, false)
    }

    fn inner(self, word: &str, linked: bool) -> Option<Self> {
        if word.is_empty() {
            return Some(self);
        }
        let begin = BEGINNINGS.get(word.as_bytes().get(..SHORTEST)?);
        let parts = begin.into_iter().flatten().filter_map(|atom| Some((*atom, word.strip_prefix(atom)?)));
        parts.into_iter().find_map(|(atom, rest)| {
            let next = self.then(*WORTH.get(atom)?, linked)?;
            next.inner(rest, false).or_else(|| {
                let mut links = INNER_LINKS.iter().filter_map(|link| rest.strip_prefix(link));
                links.find_map(|rest| if rest.is_empty() { None } else { next.inner(rest, true) })
            })
        })
    }

    fn value(self) -> Option<u32> {
        self.thousands.checked_mul(1000)?.checked_add(self.rest)
    }
}

/// What a single word is worth as a number.
pub(super) fn worth(word: &str) -> Option<u32> {
    if ONLY_WITHIN.contains(&word) { None } else { Numeral::default().word(word)?.value() }
}

/// The number that is written out from `at` on, and over how many words. Only of two words and more.
pub(super) fn phrase(near: Near<'_, '_>, at: usize) -> Option<(u32, usize)> {
    if near.get(at, 0).starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut said = Numeral::default().word(near.get(at, 0))?;
    let mut end = 1_usize;
    while end < MOST_WORDS {
        let word = |step: usize| near.get(at.saturating_add(step), 0);
        if let Some(next) = said.word(word(end)) {
            (said, end) = (next, end.saturating_add(1));
        } else if LINKS.contains(&word(end))
            && let Some(next) = said.word(word(end.saturating_add(1)))
        {
            (said, end) = (next, end.saturating_add(2));
        } else {
            break;
        }
    }
    if end == 1 { None } else { Some((said.value()?, end)) }
}
