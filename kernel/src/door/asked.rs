//! An action with everything in it resolved and nothing decided.

use std::time::Duration;

use ephor_base::{
    Action, ActionKind, Arguments, Budget, CallId, Capability, Confidentiality, Digest, EndReason, ModelAction,
    ModelTask, Registration, Reply, ReplyAction, ReplyTask, Task, ToolAction, ToolName, ToolSpec, ToolTask, cbor,
};
use ephor_chain::record::Content;
use ephor_governance::{Ask, Carried, Gate, Registry, SchemaFault, ToolAsk};

use super::{Refusal, Session, session::Shown};

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
    pub(crate) chosen: Option<(CallId, u32)>,
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
    pub(crate) registration: Registration,
    pub(crate) fault: Option<SchemaFault>,
    /// The untrusted arguments, which its result may repeat.
    pub(crate) carried: Carried,
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
        gate: &Gate,
        fresh: CallId,
        now: Duration,
        action: &Action,
    ) -> Result<Self, Refusal> {
        match action {
            Action::Model(action) => Self::model(session, gate, fresh, action),
            Action::Reply(action) => Self::reply(session, fresh, now, action),
            Action::Tool(ToolAction::Chosen { by, index }) => Self::chosen(session, gate, fresh, *by, *index),
            Action::Tool(ToolAction::Direct { name, arguments }) => {
                Ok(Self::tool(session, gate.registry(), fresh, name, arguments.clone()))
            }
        }
    }

    fn model(session: &Session, gate: &Gate, call: CallId, action: &ModelAction) -> Result<Self, Refusal> {
        let Shown { messages, spans, confidentiality } = session.show(&action.prompt)?;
        let tools = if action.offer_tools { offered(session, gate) } else { Vec::new() };
        let model = session.spec.model.clone();
        let digest = session.veil.digest(&[model.to_string().as_bytes(), &cbor::to_vec(&spans)]);
        let target = model.to_string();
        let ordinal = session.answered;
        let task = ModelTask { model, messages, tools, max_output_tokens: action.max_output_tokens, ordinal };
        Ok(Self {
            kind: ActionKind::Model,
            call,
            attempt: 1,
            target,
            digest,
            context: confidentiality,
            content: Some(Content::Prompt(spans)),
            what: What::Model(task),
            chosen: None,
        })
    }

    fn reply(session: &Session, call: CallId, now: Duration, action: &ReplyAction) -> Result<Self, Refusal> {
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
            digest: session.veil.digest(&[text.as_bytes()]),
            context,
            content: Some(Content::Text(text)),
            what: What::Reply(ReplyTask { reply }),
            chosen: None,
        })
    }

    fn chosen(session: &mut Session, gate: &Gate, fresh: CallId, by: CallId, index: u32) -> Result<Self, Refusal> {
        let (tool_use, context) = session.tool_use(by, index)?;
        let (raw_name, raw_arguments) = (tool_use.name.clone(), tool_use.arguments.clone());
        let (call, attempt) = session.call_for_use(by, index, fresh)?;
        let name = raw_name.parse::<ToolName>().ok().filter(|name| gate.registry().find(name).is_some());
        let mut asked = match (name, Arguments::parse(&raw_arguments)) {
            (None, _) => Self::senseless(
                session,
                call,
                &raw_name,
                &raw_arguments,
                Senseless::Unregistered,
                no_such_tool(session, gate, &raw_name),
            ),
            (Some(_), Err(error)) => {
                Self::senseless(session, call, &raw_name, &raw_arguments, Senseless::Malformed, error.to_string())
            }
            (Some(name), Ok(arguments)) => Self::tool(session, gate.registry(), call, &name, arguments),
        };
        asked.attempt = attempt;
        asked.context = context;
        asked.chosen = Some((by, index));
        Ok(asked)
    }

    fn tool(session: &Session, registry: &Registry, call: CallId, name: &ToolName, arguments: Arguments) -> Self {
        let Some(known) = registry.tool(name) else {
            let why = format!("there is no tool `{name}`");
            return Self::senseless(session, call, name.as_str(), &arguments.to_json(), Senseless::Unregistered, why);
        };
        let registration = known.registration().clone();
        let carried = session.table.carried(known, &arguments);
        let task = ToolTask {
            name: name.clone(),
            arguments: arguments.clone(),
            workspace: session.spec.workspace.clone(),
            writes: registration.capability == Capability::FsWrite,
            limits: registration.limits,
        };
        let fault = known.validate(&arguments).err();
        Self {
            kind: ActionKind::Tool,
            call,
            attempt: 1,
            target: name.to_string(),
            digest: session.veil.digest(&[name.as_str().as_bytes(), &cbor::to_vec(&arguments)]),
            context: Confidentiality::Internal,
            content: Some(Content::Arguments(arguments)),
            what: What::Tool(Box::new(ToolCall { task, registration, fault, carried })),
            chosen: None,
        }
    }

    fn senseless(session: &Session, call: CallId, name: &str, arguments: &str, ask: Senseless, why: String) -> Self {
        Self {
            kind: ActionKind::Tool,
            call,
            attempt: 1,
            // A model may write anything for a name, and this is public.
            target: name.parse::<ToolName>().map_or_else(|_| "(not a tool name)".into(), |name| name.to_string()),
            digest: session.veil.digest(&[name.as_bytes(), arguments.as_bytes()]),
            context: Confidentiality::Internal,
            content: Some(Content::Text(format!("{name} {arguments}"))),
            what: What::Senseless { ask, why },
            chosen: None,
        }
    }

    /// What governance is asked.
    pub(crate) fn ask<'a>(&'a self, registry: &'a Registry) -> Ask<'a> {
        match &self.what {
            What::Model(_) => Ask::Model,
            What::Reply(_) => Ask::Reply,
            What::Senseless { ask: Senseless::Unregistered, .. } => Ask::Tool(ToolAsk::Unregistered),
            What::Senseless { ask: Senseless::Malformed, .. } => Ask::Tool(ToolAsk::Malformed),
            What::Tool(asked) => Ask::Tool(match registry.tool(&asked.task.name) {
                Some(tool) => {
                    let fit = asked.fault.as_ref().map_or(Ok(()), Err);
                    ToolAsk::Known { tool, arguments: &asked.task.arguments, fit }
                }
                None => ToolAsk::Unregistered,
            }),
        }
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

    /// The registration, of a tool that has one.
    pub(crate) fn registration(&self) -> Option<&Registration> {
        match &self.what {
            What::Tool(tool) => Some(&tool.registration),
            What::Model(_) | What::Reply(_) | What::Senseless { .. } => None,
        }
    }

    /// What is wrong with the call in itself, for the model.
    pub(crate) fn fault(&self) -> Option<String> {
        match &self.what {
            What::Senseless { why, .. } => Some(why.clone()),
            What::Tool(tool) => tool.fault.as_ref().map(ToString::to_string),
            What::Model(_) | What::Reply(_) => None,
        }
    }

    /// Whether there is a tool of that name, whatever was said to it.
    pub(crate) const fn is_known(&self) -> bool {
        !matches!(&self.what, What::Senseless { ask: Senseless::Unregistered, .. })
    }

    /// The tool and its arguments, of a tool call.
    pub(crate) fn tool_call(&self) -> Option<&ToolCall> {
        match &self.what {
            What::Tool(tool) => Some(tool),
            What::Model(_) | What::Reply(_) | What::Senseless { .. } => None,
        }
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

/// The tools the session is entitled to, for the model.
fn offered(session: &Session, gate: &Gate) -> Vec<ToolSpec> {
    let rights = session.spec.rights.intersect(&gate.policy().rights());
    let entitled = |tool: &&Registration| rights.allow(tool.capability) && !gate.policy().never.contains(&tool.name);
    let spec = |tool: &Registration| ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        schema: tool.schema.clone(),
    };
    gate.registry().iter().filter(entitled).map(spec).collect()
}

fn no_such_tool(session: &Session, gate: &Gate, name: &str) -> String {
    let names: Vec<String> = offered(session, gate).iter().map(|tool| tool.name.to_string()).collect();
    let name: String = name.chars().take(80).collect();
    format!("there is no tool `{name}`; the tools are {}", names.join(", "))
}

/// A reply that ends for another reason than an answer says so.
fn with_notice(text: String, end: EndReason) -> String {
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
