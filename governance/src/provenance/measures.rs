//! What is measured, and in which unit: 2.85 m high, a height of 285 cm.

/// What is measured, as an argument or a text calls it.
const DIMENSIONS: [&[&str]; 5] = [
    &["length", "länge", "longueur", "lunghezza", "longitud", "comprimento", "lengte", "długość"],
    &["height", "höhe", "hauteur", "altezza", "altura", "hoogte", "wysokość"],
    &["width", "breite", "largeur", "larghezza", "anchura", "ancho", "largura", "breedte", "szerokość"],
    &["depth", "tiefe", "profondeur", "profondità", "profundidad", "profundidade", "diepte", "głębokość"],
    &["weight", "gewicht", "poids", "peso", "waga"],
];
/// The words behind a number that say the same of it, in the same order.
const ADJECTIVES: [&[&str]; 5] = [
    &["long", "lang", "longue", "lungo", "lunga", "comprido", "comprida", "długi", "długa", "długości"],
    &["high", "tall", "hoch", "haut", "haute", "alto", "alta", "hoog", "wysoki", "wysoka", "wysokości"],
    &["wide", "broad", "breit", "ancho", "ancha", "breed", "szeroki", "szeroka", "szerokości"],
    &["deep", "tief", "profond", "profondo", "profondeur", "diep", "głęboki", "głębokości"],
    &["heavy", "schwer", "lourd", "pesante", "pesado", "pesada", "zwaar", "ciężki"],
];
/// Units, each with what a key or a text may call it. What is no minute and no million is not among them: `m` behind a
/// number is only read where it is a metre by what stands around it.
const UNITS: [&[&str]; 10] = [
    &["m", "metre", "metres", "meter", "meters", "mètre", "mètres", "metri", "metros"],
    &["cm", "centimetre", "centimetres", "centimeter", "centimeters", "zentimeter"],
    &["mm", "millimetre", "millimetres", "millimeter", "millimeters"],
    &["km", "kilometre", "kilometres", "kilometer", "kilometers"],
    &["ft", "foot", "feet"],
    &["inch", "inches"],
    &["kg", "kgs", "kilo", "kilos", "kilogram", "kilograms", "kilogramm"],
    &["g", "gram", "grams", "gramm"],
    &["lb", "lbs"],
    &["t", "tonne", "tonnes"],
];

fn within(lists: &[&[&str]], word: &str) -> Option<usize> {
    lists.iter().position(|list| list.contains(&word))
}

/// Which dimension a word names.
pub(super) fn dimension(word: &str) -> Option<usize> {
    within(&DIMENSIONS, word)
}

/// Which dimension a word behind a number says it is of.
pub(super) fn adjective(word: &str) -> Option<usize> {
    within(&ADJECTIVES, word)
}

/// Which unit a word is.
pub(super) fn measure(word: &str) -> Option<usize> {
    within(&UNITS, word)
}

/// The number and the unit of a word such as `180cm`.
pub(super) fn glued(word: &str) -> Option<(&str, &str)> {
    let end = word.rfind(|c: char| c.is_ascii_digit())?.saturating_add(1);
    let (number, unit) = word.split_at_checked(end)?;
    matches!(unit, "cm" | "mm" | "km" | "kg" | "ft" | "lb" | "lbs").then_some((number, unit))
}
