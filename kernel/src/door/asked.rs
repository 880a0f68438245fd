//! An action with everything in it resolved and nothing decided.

use std::time::Duration;

use ephor_base::{
    Action, ActionKind, Arguments, Budget, CallId, Capability, Confidentiality, Digest, EndReason, ModelAction,
    ModelTask, Registration, Reply, ReplyAction, ReplyTask, Task, ToolAction, ToolName, ToolSpec, ToolTask, cbor,
};
use ephor_chain::{
    Veil,
    record::{Chosen, Content},
};
use ephor_governance::{Ask, Gate, Registry, SchemaFault, ToolAsk};

use super::{
    Refusal, Session,
    scoping::{self, SCOPE_TOOL},
    session::Shown,
};

/// What was asked, in the door's own terms.
pub(crate) struct Asked {
    pub(crate) kind: ActionKind,
    pub(crate) call: CallId,
    /// Which attempt of the call, from 1.
    pub(crate) attempt: u32,
    /// The tool, the model, or the end of the turn.
    pub(crate) target: String,
    /// Over the canonical form of what was asked, under the veil of the session.
    pub(crate) digest: Digest,
    /// The most confidential text the asker had been shown.
    pub(crate) context: Confidentiality,
    pub(crate) content: Option<Content>,
    pub(crate) what: What,
    /// The model call and tool use it answers.
    pub(crate) chosen: Option<Chosen>,
}

/// What was asked, by kind.
pub(crate) enum What {
    Model(ModelTask),
    Reply(ReplyTask),
    Tool(Box<ToolCall>),
    /// A tool call that makes no sense, and why, for the model.
    Senseless {
        ask: Senseless,
        why: String,
    },
}

/// A tool call that makes sense, or nearly.
pub(crate) struct ToolCall {
    pub(crate) task: ToolTask,
    pub(crate) fault: Option<SchemaFault>,
}

#[derive(Clone, Copy)]
pub(crate) enum Senseless {
    Unregistered,
    Malformed,
}

impl Asked {
    /// Resolves `action` in `session`, at the monotonic time `now`.
    pub(crate) fn resolve(
        session: &mut Session,
        veil: &Veil,
        gate: &Gate,
        fresh: CallId,
        now: Duration,
        action: &Action,
    ) -> Result<Self, Refusal> {
        match action {
            Action::Model(action) => Self::model(session, veil, gate, fresh, action),
            Action::Scope { max_output_tokens } => Self::scope(session, veil, gate, fresh, *max_output_tokens),
            Action::Reply(action) => Self::reply(session, veil, fresh, now, action),
            Action::Tool(ToolAction::Chosen { by, index }) => Self::chosen(session, veil, gate, fresh, *by, *index),
            Action::Tool(ToolAction::Direct { name, arguments }) => {
                Ok(Self::tool(veil, fresh, Meant::direct(session, gate.registry(), name, arguments.clone())))
            }
        }
    }

    fn model(session: &Session, veil: &Veil, gate: &Gate, call: CallId, action: &ModelAction) -> Result<Self, Refusal> {
        let shown = session.show(&action.prompt)?;
        let tools = if action.offer_tools { offered(session, gate) } else { Vec::new() };
        let digest = digest_of(session, veil, &shown, &[]);
        let content = Content::Prompt(shown.spans.clone());
        Ok(Self {
            content: Some(content),
            ..Self::question(session, call, digest, shown, (tools, action.max_output_tokens))
        })
    }

    /// The question what the request needs. The door says what is shown with it, and not the asker.
    fn scope(session: &Session, veil: &Veil, gate: &Gate, call: CallId, most: u64) -> Result<Self, Refusal> {
        if !session.needs_scope(gate) {
            return Err(Refusal::UnknownReference("a request that nothing is pinned for yet".to_owned()));
        }
        let shown = session.show(&session.request())?;
        let digest = digest_of(session, veil, &shown, &[SCOPE_TOOL.as_bytes()]);
        let content = Content::Request(shown.spans.clone());
        let tools = vec![scoping::tool(session, gate)];
        Ok(Self { content: Some(content), ..Self::question(session, call, digest, shown, (tools, most)) })
    }

    fn question(
        session: &Session,
        call: CallId,
        digest: Digest,
        shown: Shown,
        (tools, max_output_tokens): (Vec<ToolSpec>, u64),
    ) -> Self {
        let (model, ordinal) = (session.spec.model.clone(), session.answered);
        let target = model.to_string();
        let task = ModelTask { model, messages: shown.messages, tools, max_output_tokens, ordinal };
        Self {
            kind: ActionKind::Model,
            call,
            attempt: 1,
            target,
            digest,
            context: shown.confidentiality,
            content: None,
            what: What::Model(task),
            chosen: None,
        }
    }

    fn reply(
        session: &Session,
        veil: &Veil,
        call: CallId,
        now: Duration,
        action: &ReplyAction,
    ) -> Result<Self, Refusal> {
        let (text, context) = match action.answer {
            Some(answer) => session.answer_text(answer)?,
            None => (String::new(), Confidentiality::Public),
        };
        let text = with_notice(text, action.end);
        let reply = Reply {
            session: session.id,
            text: text.clone(),
            end: action.end,
            receipts: session.turn.as_ref().map(|turn| turn.receipts.clone()).unwrap_or_default(),
            report: session.turn.as_ref().map(|turn| turn.report_at(now)).unwrap_or_default(),
        };
        Ok(Self {
            kind: ActionKind::Reply,
            call,
            attempt: 1,
            target: action.end.code(),
            digest: veil.digest(&[text.as_bytes()]),
            context,
            content: Some(Content::Text(text)),
            what: What::Reply(ReplyTask { reply }),
            chosen: None,
        })
    }

    fn chosen(
        session: &mut Session,
        veil: &Veil,
        gate: &Gate,
        fresh: CallId,
        by: CallId,
        index: u32,
    ) -> Result<Self, Refusal> {
        let chosen = Chosen { of: by, index };
        let (meant, context) = Meant::of_use(session, gate, chosen)?;
        let (call, attempt) = session.call_for_use(by, index, fresh)?;
        Ok(Self { attempt, context, chosen: Some(chosen), ..Self::tool(veil, call, meant) })
    }

    fn tool(veil: &Veil, call: CallId, meant: Meant) -> Self {
        let [name, arguments] = &meant.pieces;
        Self {
            kind: ActionKind::Tool,
            call,
            attempt: 1,
            digest: veil.digest(&[name, arguments]),
            target: meant.target,
            context: Confidentiality::Internal,
            content: Some(meant.content),
            what: meant.what,
            chosen: None,
        }
    }

    /// What governance is asked.
    pub(crate) fn ask<'a>(&'a self, registry: &'a Registry) -> Ask<'a> {
        self.what.ask(registry)
    }

    /// The task, if it makes sense.
    pub(crate) fn task(&self) -> Option<Task> {
        match &self.what {
            What::Model(task) => Some(Task::Model(task.clone())),
            What::Reply(task) => Some(Task::Reply(task.clone())),
            What::Tool(tool) => Some(Task::Tool(tool.task.clone())),
            What::Senseless { .. } => None,
        }
    }

    /// What is wrong with the call in itself, for the model.
    pub(crate) fn fault(&self) -> Option<String> {
        self.what.fault()
    }

    /// The tool and its arguments, of a tool call.
    pub(crate) fn tool_call(&self) -> Option<&ToolCall> {
        self.what.tool_call()
    }

    /// A tool's arguments as JSON text, for people; empty for other kinds.
    pub(crate) fn arguments_text(&self) -> String {
        match &self.what {
            What::Tool(tool) => tool.task.arguments.to_json(),
            What::Model(_) | What::Reply(_) | What::Senseless { .. } => String::new(),
        }
    }

    /// The least a call of this kind uses, whatever its driver estimates.
    pub(crate) const fn base_budget(&self) -> Budget {
        let tool_calls = if matches!(self.kind, ActionKind::Tool) { 1 } else { 0 };
        Budget { tool_calls, ..Budget::ZERO }
    }
}

/// A tool call as it was meant, whoever asked for it.
pub(crate) struct Meant {
    pub(crate) what: What,
    pub(crate) target: String,
    pub(crate) content: Content,
    /// What its digest is made of.
    pieces: [Vec<u8>; 2],
}

impl Meant {
    /// A tool use of a model's answer, and what its model had been shown.
    pub(crate) fn of_use(
        session: &Session,
        gate: &Gate,
        Chosen { of, index }: Chosen,
    ) -> Result<(Self, Confidentiality), Refusal> {
        let (tool_use, context) = session.tool_use(of, index)?;
        let (raw_name, raw_arguments) = (&tool_use.name, &tool_use.arguments);
        let name = raw_name.parse::<ToolName>().ok().filter(|name| gate.registry().find(name).is_some());
        let meant = match (name, Arguments::parse(raw_arguments)) {
            (None, _) => {
                let why = no_such_tool(session, gate, raw_name);
                Self::senseless(raw_name, raw_arguments, Senseless::Unregistered, why)
            }
            (Some(_), Err(error)) => Self::senseless(raw_name, raw_arguments, Senseless::Malformed, error.to_string()),
            (Some(name), Ok(arguments)) => Self::direct(session, gate.registry(), &name, arguments),
        };
        Ok((meant, context))
    }

    /// A call that names its tool and arguments.
    pub(crate) fn direct(session: &Session, registry: &Registry, name: &ToolName, arguments: Arguments) -> Self {
        let Some(known) = registry.tool(name) else {
            let why = format!("there is no tool `{name}`");
            return Self::senseless(name.as_str(), &arguments.to_json(), Senseless::Unregistered, why);
        };
        let registration = known.registration();
        let task = ToolTask {
            name: name.clone(),
            arguments: arguments.clone(),
            workspace: session.spec.workspace.clone(),
            writes: registration.capability == Capability::FsWrite,
            limits: registration.limits,
        };
        let fault = known.validate(&arguments).err();
        Self {
            target: name.to_string(),
            pieces: [name.as_str().as_bytes().to_vec(), cbor::to_vec(&arguments)],
            content: Content::Arguments(arguments),
            what: What::Tool(Box::new(ToolCall { task, fault })),
        }
    }

    /// The call that a verdict on the record speaks of.
    pub(crate) fn recorded(
        session: &Session,
        gate: &Gate,
        target: &str,
        chosen: Option<Chosen>,
        content: Option<&Content>,
    ) -> Result<Self, String> {
        let meant = match (chosen, content) {
            (Some(chosen), _) => Self::of_use(session, gate, chosen).map_err(|refusal| refusal.to_string())?.0,
            (None, Some(Content::Arguments(arguments))) => {
                let name: ToolName = target.parse().map_err(|_| "a call names no tool")?;
                Self::direct(session, gate.registry(), &name, arguments.clone())
            }
            (None, Some(Content::Text(text))) => {
                let (name, arguments) = text.split_once(' ').unwrap_or((text, ""));
                Self::senseless(name, arguments, Senseless::Unregistered, String::new())
            }
            (None, _) => return Err("the arguments of a call are not on the record".to_owned()),
        };
        if content == Some(&meant.content) && target == meant.target {
            return Ok(meant);
        }
        Err("the arguments of a call are not those of the tool use it names".to_owned())
    }

    fn senseless(name: &str, arguments: &str, ask: Senseless, why: String) -> Self {
        Self {
            // A model may write anything for a name, and this is public.
            target: name.parse::<ToolName>().map_or_else(|_| "(not a tool name)".into(), |name| name.to_string()),
            pieces: [name.as_bytes().to_vec(), arguments.as_bytes().to_vec()],
            content: Content::Text(format!("{name} {arguments}")),
            what: What::Senseless { ask, why },
        }
    }

    /// The tool and its arguments, of a call that names both.
    pub(crate) fn call(&self) -> Option<(&ToolName, &Arguments)> {
        self.what.tool_call().map(|tool| (&tool.task.name, &tool.task.arguments))
    }

    /// What is wrong with the call in itself, for the model.
    pub(crate) fn fault(&self) -> Option<String> {
        self.what.fault()
    }

    /// Whether there is a tool of that name, whatever was said to it.
    pub(crate) const fn is_known(&self) -> bool {
        !matches!(&self.what, What::Senseless { ask: Senseless::Unregistered, .. })
    }
}

impl What {
    /// What governance is asked.
    pub(crate) fn ask<'a>(&'a self, registry: &'a Registry) -> Ask<'a> {
        match self {
            Self::Model(_) => Ask::Model,
            Self::Reply(_) => Ask::Reply,
            Self::Senseless { ask: Senseless::Unregistered, .. } => Ask::Tool(ToolAsk::Unregistered),
            Self::Senseless { ask: Senseless::Malformed, .. } => Ask::Tool(ToolAsk::Malformed),
            Self::Tool(asked) => Ask::Tool(match registry.tool(&asked.task.name) {
                Some(tool) => {
                    let fit = asked.fault.as_ref().map_or(Ok(()), Err);
                    ToolAsk::Known { tool, arguments: &asked.task.arguments, fit }
                }
                None => ToolAsk::Unregistered,
            }),
        }
    }

    fn tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::Tool(tool) => Some(tool),
            Self::Model(_) | Self::Reply(_) | Self::Senseless { .. } => None,
        }
    }

    fn fault(&self) -> Option<String> {
        match self {
            Self::Senseless { why, .. } => Some(why.clone()),
            Self::Tool(tool) => tool.fault.as_ref().map(ToString::to_string),
            Self::Model(_) | Self::Reply(_) => None,
        }
    }
}

/// Over the model, what it is shown, and what else it is asked.
fn digest_of(session: &Session, veil: &Veil, shown: &Shown, what: &[&[u8]]) -> Digest {
    let (model, spans) = (session.spec.model.to_string(), cbor::to_vec(&shown.spans));
    veil.digest(&[&[model.as_bytes(), &spans], what].concat())
}

/// The tools the session is entitled to, for the model.
pub(crate) fn offered(session: &Session, gate: &Gate) -> Vec<ToolSpec> {
    let spec = |tool: &Registration| ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        schema: tool.schema.clone(),
    };
    entitled(session, gate).map(spec).collect()
}

/// The registrations of the tools the session is entitled to.
pub(crate) fn entitled<'a>(session: &Session, gate: &'a Gate) -> impl Iterator<Item = &'a Registration> {
    let rights = session.spec.rights.intersect(&gate.policy().rights());
    let is_entitled = move |tool: &&Registration| {
        rights.allow(tool.capability) && rights.are_for(&tool.name) && !gate.policy().never.contains(&tool.name)
    };
    gate.registry().iter().filter(is_entitled)
}

fn no_such_tool(session: &Session, gate: &Gate, name: &str) -> String {
    let names: Vec<String> = offered(session, gate).iter().map(|tool| tool.name.to_string()).collect();
    let name: String = name.chars().take(80).collect();
    format!("there is no tool `{name}`; the tools are {}", names.join(", "))
}

/// A reply that ends for another reason than an answer says so.
pub(crate) fn with_notice(text: String, end: EndReason) -> String {
    let notice = match end {
        EndReason::Replied => return text,
        EndReason::Cancelled => "Cancelled.".to_owned(),
        EndReason::BudgetSpent(resource) => {
            format!("The budget of this agent is spent ({}). Raise it to go on.", resource.name())
        }
        EndReason::LimitHit(limit) => format!("Stopped at a limit of the turn: {}.", limit.code().replace('_', " ")),
        EndReason::Failed(kind) => format!("The model request failed: {}.", kind.code().replace('_', " ")),
        EndReason::Refused => "The policy of this node does not allow it.".to_owned(),
        EndReason::Crashed => "The agent crashed more often than its supervisor allows.".to_owned(),
    };
    if text.is_empty() { notice } else { format!("{text}\n\n{notice}") }
}
