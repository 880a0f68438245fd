//! A small office for tests of plans: tools, what was typed, what was answered, and what a plan makes of a call.

use ephor_base::{
    Arguments, CallId, Confidentiality, Destinations, Flow, Format, Integrity, Label, Paging, Registration, Source,
    ToolName,
};
use ephor_governance::{
    Plan, Registry, SpanTable, Spent,
    gate::call_digest,
    plan::{Act, Call, Judge, Matched},
};

use crate::world::tool;

/// A tool of the office.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static [&'static str],
    pub(crate) critical: &'static [&'static str],
    pub(crate) integrity: Integrity,
    pub(crate) flow: Flow,
}

impl Made {
    fn registration(self) -> Registration {
        let properties: Vec<String> = self.arguments.iter().map(|name| property(name)).collect();
        Registration {
            name: self.name.parse().unwrap(),
            schema: format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", properties.join(",")),
            paths: Vec::new(),
            consequential: self.critical.iter().map(|name| (*name).to_owned()).collect(),
            integrity: self.integrity,
            flow: self.flow,
            ..tool()
        }
    }
}

/// A page has three records where the call does not say.
fn property(name: &str) -> String {
    format!("\"{name}\":{}", if name == "size" { r#"{"default":3}"# } else { "{}" })
}

fn reads(name: &'static str, integrity: Integrity, format: Format) -> Made {
    let flow = Flow { format, ..Flow::looks() };
    Made { name, arguments: &["name", "month", "page", "size", "q", "id"], critical: &[], integrity, flow }
}

/// `pay` and `send` go somewhere, `drop` deletes a thing of one's own; the rest reads.
pub(crate) fn registry() -> Registry {
    let to = Destinations::Of(vec!["to".to_owned()]);
    let pages = Paging { size: Some("size".into()), page: Some("page".into()), first: Some(1), next: None };
    let cursors = Paging { size: None, page: Some("page".into()), first: None, next: Some("next".into()) };
    let untrusted = |name, format| reads(name, Integrity::Untrusted, format);
    let trusted = |name, format| reads(name, Integrity::Trusted, format);
    let paged = |mut made: Made, paging: &Paging| {
        made.flow.paging = paging.clone();
        made
    };
    let act =
        |name, arguments, critical, flow| Made { name, arguments, critical, integrity: Integrity::Untrusted, flow };
    let made = [
        act("pay", &["to", "amount", "note"], &["to", "amount"], Flow { destinations: to.clone(), ..Flow::acts() }),
        act("send", &["to", "cc", "body"], &["to", "cc"], Flow::acts()),
        act(
            "drop",
            &["id", "reason"],
            &["id"],
            Flow { identifies: vec!["id".into()], destinations: Destinations::Of(Vec::new()), ..Flow::acts() },
        ),
        trusted("contacts", Format::Json),
        trusted("balance", Format::Csv),
        trusted("memo", Format::Text),
        trusted("silent", Format::None),
        untrusted("mails", Format::Json),
        untrusted("notes", Format::Yaml),
        untrusted("site", Format::Text),
        paged(untrusted("invoices", Format::Json), &pages),
        paged(trusted("orders", Format::Json), &cursors),
    ];
    Registry::new(made.map(Made::registration)).unwrap()
}

/// A turn in the office.
pub(crate) struct Office {
    pub(crate) registry: Registry,
    pub(crate) spans: SpanTable,
    pub(crate) spent: Spent,
}

impl Office {
    /// Somebody typed `text`.
    pub(crate) fn typed(text: &str) -> Self {
        Self { registry: registry(), spans: crate::world::said(text), spent: Spent::default() }
    }

    /// A tool answered a call.
    pub(crate) fn answered(mut self, tool: &str, arguments: &str, text: &str) -> Self {
        let tool = self.registry.tool(&name(tool)).unwrap();
        let carried = self.spans.carried(tool, &Arguments::parse(arguments).unwrap());
        let label = Label::new(Source::Tool, tool.registration().integrity, Confidentiality::Public);
        self.spans.enter_result(label, text, tool.registration(), carried);
        self
    }

    pub(crate) fn plan(&self, json: &str) -> Plan {
        Plan::parse(json, &|name| name.parse().ok().filter(|name| self.registry.tool(name).is_some())).unwrap()
    }

    pub(crate) fn matched(&self, plan: &Plan, id: u64, tool: &str, arguments: &str) -> Matched {
        let tool = self.registry.tool(&name(tool)).unwrap();
        let arguments = &Arguments::parse(arguments).unwrap();
        let judge = Judge { plan, spent: &self.spent, sources: self.spans.sources() };
        judge.call(&Call { id: CallId(id), tool, arguments })
    }

    /// Whether the plan with these steps permits the call.
    pub(crate) fn permits(&self, steps: &str, tool: &str, arguments: &str) -> bool {
        self.matched(&self.plan(&format!("{{\"steps\":[{steps}]}}")), u64::MAX, tool, arguments).permits
    }

    /// The call is made, and permitted or left waiting.
    pub(crate) fn took(&mut self, plan: &Plan, id: u64, tool: &str, arguments: &str, permitted: bool) -> bool {
        let matched = self.matched(plan, id, tool, arguments);
        let digest = call_digest(&name(tool), &Arguments::parse(arguments).unwrap());
        let step = matched.step.map(|(_, used)| used);
        self.spent.take(Act { call: CallId(id), digest, step, permitted });
        matched.permits
    }
}

pub(crate) fn name(tool: &str) -> ToolName {
    tool.parse().unwrap()
}
