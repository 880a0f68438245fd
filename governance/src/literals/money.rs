//! Amounts with their currency.

use super::number::Number;

/// A currency: its code of ISO 4217, or the sign it was written with. What a `$` is worth the text does not say, so that it is
/// equal to another `$` and to no code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Currency([u8; 3]);

/// Codes that are read. Another word beside a number is none.
const CODES: &str = "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MAD MXN \
    MYR NOK NZD PEN PHP PLN QAR RON RSD SAR SEK SGD THB TRY TWD UAH USD VND ZAR";

/// Signs, and the codes of those that stand for one currency.
const SIGNS: [(&str, [u8; 3]); 6] =
    [("€", *b"EUR"), ("£", *b"GBP"), ("₹", *b"INR"), ("zł", *b"PLN"), ("$", *b"$  "), ("¥", *b"\xc2\xa5 ")];

impl Currency {
    fn read(word: &str) -> Option<Self> {
        let sign = SIGNS.iter().find(|(sign, _)| *sign == word).map(|(_, code)| *code);
        let code = || {
            let known = CODES.split(' ').find(|code| *code == word)?;
            known.as_bytes().try_into().ok()
        };
        sign.or_else(code).map(Self)
    }
}

/// An amount in one word, `$50`, `50€`, `CHF120`, or in the first two, `CHF 120`, `120 EUR`; with the number of words.
pub(super) fn amount(first: &str, second: Option<&str>) -> Option<(Currency, Number, usize)> {
    if let Some((currency, number)) = glued(first) {
        return Some((currency, number, 1));
    }
    let second = second?;
    let before = || Some((Currency::read(first)?, Number::written(second)?, 2));
    let behind = || Some((Currency::read(second)?, Number::written(first)?, 2));
    before().or_else(behind)
}

fn glued(word: &str) -> Option<(Currency, Number)> {
    let is_figure = |c: char| c.is_ascii_digit();
    let (first, last) = (word.find(|c: char| is_figure(c) || c == '-')?, word.rfind(is_figure)?.checked_add(1)?);
    let (before, rest) = word.split_at_checked(first)?;
    if before.is_empty() {
        let (number, after) = word.split_at_checked(last)?;
        return Some((Currency::read(after)?, Number::written(number)?));
    }
    Some((Currency::read(before)?, Number::written(rest)?))
}

/// A number or an amount, without its currency; none if the text has anything else.
pub(crate) fn size(text: &str) -> Option<Number> {
    let mut words = text.split_whitespace();
    let (first, second) = (words.next()?, words.next());
    if words.next().is_some() {
        return None;
    }
    let whole = || if second.is_none() { Number::written(first) } else { None };
    let amount = || amount(first, second).filter(|(_, _, read)| *read == 2 || second.is_none());
    whole().or_else(|| amount().map(|(_, number, _)| number))
}
