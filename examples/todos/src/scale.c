/* Weighs a letter, in grams. Mastodons are not letters. */
int weigh(const struct letter *letter)
{
    return letter->paper + letter->stamp; /* TODO: the envelope weighs something too */
}
