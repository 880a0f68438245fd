//! The form of a plan: JSON as a model writes it, and canonical CBOR of the same shape for the record.

use std::collections::BTreeMap;

use ephor_base::ToolName;
use minicbor::{Decode, Decoder, Encode, Encoder, data::Type};

use super::{MAX_ENTRIES, MAX_STEPS, MAX_TEXT, MAX_TIMES, MAX_WITHIN, Origin, Pick, Plan, Source, Step, Times};
use crate::{datum::Datum, literals::Number};

/// A text that is no plan. There is none then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadPlan {
    /// The whole is not a plan.
    #[error("the plan is not understood: {0}")]
    Whole(String),
    /// A step is not one.
    #[error("step {step} of the plan is not understood: {why}")]
    Step {
        /// Which, from 1.
        step: usize,
        /// What is wrong with it.
        why: String,
    },
}

impl BadPlan {
    pub(super) const fn whole(why: String) -> Self {
        Self::Whole(why)
    }
}

type Fault<T> = Result<T, String>;

/// How a name becomes a tool.
type Known<'a> = &'a dyn Fn(&str) -> Option<ToolName>;

pub(super) fn read(datum: &Datum, keys: &[&str], known: Known<'_>) -> Result<Plan, BadPlan> {
    let whole = Entries::of(datum, keys).map_err(BadPlan::Whole)?;
    let Some(Datum::List(steps)) = whole.get("steps") else {
        return Err(BadPlan::whole("`steps` is a list".to_owned()));
    };
    if steps.len() > MAX_STEPS {
        return Err(BadPlan::whole(format!("it has {} steps; write at most {MAX_STEPS}", steps.len())));
    }
    let numbered = steps.iter().zip(1..);
    let step = |(datum, number)| step(datum, known).map_err(|why| BadPlan::Step { step: number, why });
    numbered.map(step).collect::<Result<_, _>>().map(Plan::of)
}

fn step(datum: &Datum, known: Known<'_>) -> Fault<Step> {
    let step = Entries::of(datum, &["tool", "times", "arguments"])?;
    let name = step.get("tool").and_then(Datum::as_text).ok_or("`tool` is the name of a tool")?;
    let empty = Datum::Object(Vec::new());
    let arguments = step.get("arguments").unwrap_or(&empty);
    if name == "*" {
        return anything(&step, arguments, known);
    }
    let times = match step.get("times") {
        None => Times::Number(1),
        Some(Datum::Text(text)) if &**text == "each" => Times::Each,
        Some(Datum::Number(number)) => {
            let number = number.to_u64().and_then(|number| u16::try_from(number).ok());
            let number = number.filter(|number| (1..=MAX_TIMES).contains(number));
            Times::Number(number.ok_or_else(|| format!("`times` is 1 to {MAX_TIMES}, or \"each\""))?)
        }
        Some(_) => return Err(format!("`times` is 1 to {MAX_TIMES}, or \"each\"")),
    };
    Ok(Step::Call { tool: tool(name, known)?, times, arguments: origins(arguments, known, 0)? })
}

/// `{"tool":"*","arguments":{"*":{"from":TOOL}}}`.
fn anything(step: &Entries<'_>, arguments: &Datum, known: Known<'_>) -> Fault<Step> {
    let wanted = "a step of `*` is {\"tool\":\"*\",\"arguments\":{\"*\":{\"from\":TOOL}}} and nothing more";
    let star = Entries::of(arguments, &["*"])?.get("*").ok_or(wanted)?;
    let from = Entries::of(star, &["from"])?.get("from").ok_or(wanted)?;
    if step.get("times").is_some() {
        return Err(wanted.to_owned());
    }
    Ok(Step::Anything { from: tools(from, known)? })
}

fn origins(datum: &Datum, known: Known<'_>, depth: usize) -> Fault<BTreeMap<Box<str>, Origin>> {
    let Datum::Object(entries) = datum else { return Err("arguments are an object".to_owned()) };
    bounded("arguments", entries.len())?;
    let read = |(name, datum): &(Box<str>, Datum)| {
        let name = short(name)?;
        let origin = origin(datum, known, depth).map_err(|why| format!("argument `{name}`: {why}"))?;
        if name == "*" { Err("`*` is an argument of the tool `*` alone".to_owned()) } else { Ok((name.into(), origin)) }
    };
    entries.iter().map(read).collect()
}

fn origin(datum: &Datum, known: Known<'_>, depth: usize) -> Fault<Origin> {
    let wanted =
        || "an argument is {\"is\":…}, {\"in\":[…]}, {\"from\":…}, {\"text\":true} or {\"ask\":true}".to_owned();
    let Datum::Object(entries) = datum else { return Err(wanted()) };
    match entries.as_slice() {
        [(key, value)] if &**key == "is" => Ok(Origin::Is(plain(value)?)),
        [(key, Datum::List(values))] if &**key == "in" => {
            bounded("values", values.len())?;
            if values.is_empty() {
                return Err("`in` has no value".to_owned());
            }
            values.iter().map(plain).collect::<Fault<_>>().map(Origin::In)
        }
        [(key, Datum::Bool(true))] if &**key == "text" => Ok(Origin::Text),
        [(key, Datum::Bool(true))] if &**key == "ask" => Ok(Origin::Ask),
        _ if entries.iter().any(|(key, _)| &**key == "from") => {
            source(datum, known, depth).map(|source| Origin::From(Box::new(source)))
        }
        _ => Err(wanted()),
    }
}

fn source(datum: &Datum, known: Known<'_>, depth: usize) -> Fault<Source> {
    let entries = Entries::of(datum, &["from", "field", "where", "pick", "with"])?;
    let from = entries.get("from").ok_or("`from` names no tool")?;
    let text = |key: &str| match entries.get(key) {
        None => Ok(None),
        Some(Datum::Text(text)) => short(text).map(Some),
        Some(_) => Err(format!("`{key}` is a text")),
    };
    let with = match entries.get("with") {
        None => BTreeMap::new(),
        Some(_) if depth >= MAX_WITHIN => {
            return Err(format!("`with` lies in one another more than {MAX_WITHIN} times"));
        }
        Some(with) => origins(with, known, depth.saturating_add(1))?,
    };
    let given = match entries.get("where") {
        None => None,
        Some(Datum::Object(keys)) => {
            bounded("keys", keys.len())?;
            let read = |(key, value): &(Box<str>, Datum)| Ok((short(key)?.into(), plain(value)?));
            Some(keys.iter().map(read).collect::<Fault<_>>()?)
        }
        Some(_) => return Err("`where` is an object of keys and values".to_owned()),
    };
    let pick = text("pick")?.map_or(Ok(Pick::Only), pick)?;
    Ok(Source { tools: tools(from, known)?, field: text("field")?.map(Into::into), given, pick, with })
}

fn pick(text: &str) -> Fault<Pick> {
    let key = |key: &str| if key.is_empty() { None } else { Some(Box::from(key)) };
    let of = |word: &str| text.strip_prefix(word).and_then(key);
    match text {
        "only" => Ok(Pick::Only),
        "first" => Ok(Pick::First),
        "last" => Ok(Pick::Last),
        "all" => Ok(Pick::All),
        _ => of("least ")
            .map(Pick::Least)
            .or_else(|| of("most ").map(Pick::Most))
            .ok_or_else(|| "`pick` is only, first, last, all, least KEY or most KEY".to_owned()),
    }
}

fn tools(datum: &Datum, known: Known<'_>) -> Fault<Vec<ToolName>> {
    let wanted = || "`from` is the name of a tool, or a list of them".to_owned();
    match datum {
        Datum::Text(name) => tool(name, known).map(|tool| vec![tool]),
        Datum::List(names) if !names.is_empty() => {
            bounded("tools", names.len())?;
            let mut tools: Vec<ToolName> = Vec::new();
            for name in names {
                let tool = tool(name.as_text().ok_or_else(wanted)?, known)?;
                if tools.contains(&tool) {
                    return Err(format!("`from` names `{tool}` twice"));
                }
                tools.push(tool);
            }
            Ok(tools)
        }
        _ => Err(wanted()),
    }
}

fn tool(name: &str, known: Known<'_>) -> Fault<ToolName> {
    known(name).ok_or_else(|| format!("there is no tool `{}`", name.chars().take(64).collect::<String>()))
}

/// A value that can be compared and written down exactly.
fn plain(datum: &Datum) -> Fault<Datum> {
    match datum {
        Datum::Text(text) => short(text).map(|_| ())?,
        Datum::Number(number) => drop(fits(*number).ok_or("a number of more than 19 figures")?),
        Datum::Wide => return Err("a number of more than 19 figures".to_owned()),
        Datum::List(values) => {
            bounded("values", values.len())?;
            values.iter().try_for_each(|value| plain(value).map(drop))?;
        }
        Datum::Object(entries) => {
            bounded("keys", entries.len())?;
            entries.iter().try_for_each(|(key, value)| short(key).and_then(|_| plain(value)).map(drop))?;
        }
        Datum::Null | Datum::Bool(_) | Datum::Cell(_) => {}
    }
    Ok(datum.clone())
}

fn fits(number: Number) -> Option<(i64, i32)> {
    let (coefficient, exponent) = number.parts()?;
    Some((i64::try_from(coefficient).ok()?, exponent))
}

fn short(text: &str) -> Fault<&str> {
    if text.len() > MAX_TEXT { Err(format!("a text of more than {MAX_TEXT} bytes")) } else { Ok(text) }
}

fn bounded(what: &str, count: usize) -> Fault<()> {
    if count > MAX_ENTRIES { Err(format!("{count} {what}; write at most {MAX_ENTRIES}")) } else { Ok(()) }
}

/// An object in which nothing stands that has no meaning.
struct Entries<'a>(&'a [(Box<str>, Datum)]);

impl<'a> Entries<'a> {
    fn of(datum: &'a Datum, keys: &[&str]) -> Fault<Self> {
        let Datum::Object(entries) = datum else { return Err(format!("an object with {} is wanted", keys.join(", "))) };
        match entries.iter().find(|(key, _)| !keys.contains(&&**key)) {
            Some((key, _)) => Err(format!("`{}` means nothing", key.chars().take(64).collect::<String>())),
            None => Ok(Self(entries)),
        }
    }

    fn get(&self, key: &str) -> Option<&'a Datum> {
        self.0.iter().find(|(own, _)| &**own == key).map(|(_, datum)| datum)
    }
}

/// The same in the shape that [`read`] takes, with everything said and keys in order.
fn shape(step: &Step) -> Datum {
    match step {
        Step::Call { tool, times, arguments } => {
            let times = match times {
                Times::Each => Datum::text("each"),
                Times::Number(number) => Number::whole((*number).into()).map_or(Datum::Wide, Datum::Number),
            };
            keyed([("tool", name(tool)), ("times", times), ("arguments", shapes(arguments))])
        }
        Step::Anything { from } => {
            let star = keyed([("*", keyed([("from", names(from))]))]);
            keyed([("tool", Datum::text("*")), ("arguments", star)])
        }
    }
}

fn shapes(arguments: &BTreeMap<Box<str>, Origin>) -> Datum {
    keyed(arguments.iter().map(|(name, origin)| (&**name, origin_shape(origin))))
}

fn origin_shape(origin: &Origin) -> Datum {
    match origin {
        Origin::Is(value) => keyed([("is", value.clone())]),
        Origin::In(values) => keyed([("in", Datum::List(values.clone()))]),
        Origin::Text => keyed([("text", Datum::Bool(true))]),
        Origin::Ask => keyed([("ask", Datum::Bool(true))]),
        Origin::From(source) => {
            let Source { tools, field, given, pick, with } = &**source;
            let pick = match pick {
                Pick::Only => "only".to_owned(),
                Pick::First => "first".to_owned(),
                Pick::Last => "last".to_owned(),
                Pick::All => "all".to_owned(),
                Pick::Least(key) => format!("least {key}"),
                Pick::Most(key) => format!("most {key}"),
            };
            let mut entries = vec![("from", names(tools)), ("pick", Datum::text(&pick))];
            entries.extend(field.as_deref().map(|field| ("field", Datum::text(field))));
            entries.extend(
                given.as_ref().map(|keys| ("where", keyed(keys.iter().map(|(key, value)| (&**key, value.clone()))))),
            );
            if !with.is_empty() {
                entries.push(("with", shapes(with)));
            }
            keyed(entries)
        }
    }
}

fn name(tool: &ToolName) -> Datum {
    Datum::text(tool.as_str())
}

fn names(tools: &[ToolName]) -> Datum {
    Datum::List(tools.iter().map(name).collect())
}

fn keyed<'a>(entries: impl IntoIterator<Item = (&'a str, Datum)>) -> Datum {
    Datum::Object(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

impl<C> Encode<C> for Step {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        write(&shape(self), e)
    }
}

impl<C> Encode<C> for Plan {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        write(&keyed([("steps", Datum::List(self.steps.iter().map(shape).collect()))]), e)
    }
}

impl<'b, C> Decode<'b, C> for Plan {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let datum = take(d, 0)?;
        // A plan on the record was read when its tools were there: they are not looked for again.
        read(&datum, &["steps"], &|name| name.parse().ok()).map_err(minicbor::decode::Error::message)
    }
}

/// Decimal fractions (RFC 8949, section 3.4.4).
const DECIMAL: minicbor::data::Tag = minicbor::data::Tag::new(4);

fn write<W: minicbor::encode::Write>(
    datum: &Datum,
    e: &mut Encoder<W>,
) -> Result<(), minicbor::encode::Error<W::Error>> {
    match datum {
        Datum::Null | Datum::Wide => e.null()?.ok(),
        Datum::Bool(yes) => e.bool(*yes)?.ok(),
        Datum::Number(number) => {
            let (coefficient, exponent) =
                fits(*number).ok_or_else(|| minicbor::encode::Error::message("a number of too many figures"))?;
            e.tag(DECIMAL)?.array(2)?.i32(exponent)?.i64(coefficient)?.ok()
        }
        Datum::Text(text) | Datum::Cell(text) => e.str(text)?.ok(),
        Datum::List(values) => {
            e.array(values.len() as u64)?;
            values.iter().try_for_each(|value| write(value, e))
        }
        Datum::Object(entries) => {
            // RFC 8949, section 4.2.1: keys sorted by their encoded bytes, so a shorter key comes before a longer one.
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| (key.len(), key.as_bytes()));
            e.map(entries.len() as u64)?;
            entries.into_iter().try_for_each(|(key, value)| {
                e.str(key)?;
                write(value, e)
            })
        }
    }
}

fn take(d: &mut Decoder<'_>, depth: usize) -> Result<Datum, minicbor::decode::Error> {
    use minicbor::decode::Error as Malformed;
    if depth > 2 * crate::datum::MAX_DEPTH {
        return Err(Malformed::message("nested too deeply"));
    }
    let below = depth.saturating_add(1);
    match d.datatype()? {
        Type::Null => d.null().map(|()| Datum::Null),
        Type::Bool => d.bool().map(Datum::Bool),
        Type::String => d.str().map(Datum::text),
        Type::Tag if d.tag()? == DECIMAL && d.array()? == Some(2) => {
            let exponent = d.i32()?;
            let number = Number::from_parts(d.i64()?.into(), exponent);
            number.map(Datum::Number).ok_or_else(|| Malformed::message("not a normal number"))
        }
        Type::Array => {
            let length = d.array()?.ok_or_else(|| Malformed::message("indefinite length"))?;
            (0..length).map(|_| take(d, below)).collect::<Result<_, _>>().map(Datum::List)
        }
        Type::Map => {
            let length = d.map()?.ok_or_else(|| Malformed::message("indefinite length"))?;
            let entry = |_| Ok((Box::from(d.str()?), take(d, below)?));
            let entries = (0..length).map(entry).collect::<Result<Vec<(Box<str>, Datum)>, Malformed>>()?;
            crate::datum::object(entries).map_err(Malformed::message)
        }
        _ => Err(Malformed::message("not of a plan")),
    }
}
