/// Weighs a letter, in grams. Mastodons are not letters.
fn weigh(letter: &Letter) -> u32 {
    letter.paper + letter.stamp // TODO: the envelope weighs something too
}
